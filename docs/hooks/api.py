"""The API pages: one for each room, made from its `__all__` as the site is built; a new member appears by itself."""

from __future__ import annotations

import importlib
from typing import Any

from rooms import Name, Room, owners, rooms


def on_config(config: Any) -> Any:
    """Enter the pages in the navigation."""
    pages = [{room.path: room.page} for room in rooms().values()]
    config.nav.append({"API": [{"Every room": "api/index.md"}, *pages]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the site; none of them lies on the disk."""
    from mkdocs.structure.files import File

    all_rooms = rooms()
    files.append(File.generated(config, "api/index.md", content=index(all_rooms)))
    for room in all_rooms.values():
        files.append(File.generated(config, room.page, content=page(room, all_rooms)))
    return files


def index(all_rooms: dict[str, Room]) -> str:
    """Every room in a line."""
    lines = ["# API", "", "Every public name, by room, from the docstrings of the code.", "", "| room | what it is |"]
    lines += ["|---|---|"]
    for room in all_rooms.values():
        file = room.page.removeprefix("api/")
        lines.append(f"| [`{room.path}`]({file}) | {_first_paragraph(room.docstring)} |")
    return "\n".join(lines) + "\n"


def page(room: Room, all_rooms: dict[str, Room]) -> str:
    """The page of a room: its docstring, the rooms inside, and each of its names once."""
    owner_by_object = owners(all_rooms)
    parts = [f"# {room.path}", room.docstring]
    if room.rooms:
        links = [f"[`{path}`]({_link(path, room, all_rooms)})" for path in room.rooms]
        parts.append(f"Rooms: {', '.join(links)}.")
    parts += [_entry(name, room, all_rooms, owner_by_object[name.defined]) for name in room.names]
    return "\n\n".join(parts) + "\n"


def _entry(name: Name, room: Room, all_rooms: dict[str, Room], owner: Name) -> str:
    if name.short_name == "TABLE":
        return _table(name)
    if owner != name:
        target = all_rooms[owner.room].page.removeprefix("api/")
        link = f"[`{owner.public}`]({target}#{owner.public})"
        return f"## {name.short_name} {{ #{name.public} }}\n\nThe same as {link}, described there."
    return f"::: {name.defined}"


def _table(name: Name) -> str:
    table = getattr(importlib.import_module(name.room), name.short_name)
    lines = [f"## {name.short_name} {{ #{name.public} }}", "Members by the names that files, records and commands use."]
    if all(isinstance(inner, dict) for inner in table.values()):
        rows = [f"- {kind}: {', '.join(f'`{word}`' for word in inner)}" for kind, inner in table.items()]
        return "\n\n".join([*lines, "\n".join(rows)])
    return "\n\n".join([*lines, ", ".join(f"`{word}`" for word in table)])


def _link(path: str, room: Room, all_rooms: dict[str, Room]) -> str:
    return all_rooms[path].page.removeprefix("api/")


def _first_paragraph(docstring: str) -> str:
    return " ".join(docstring.split("\n\n")[0].split())
