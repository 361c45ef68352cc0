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

    found = rooms()
    files.append(File.generated(config, "api/index.md", content=index(found)))
    for room in found.values():
        files.append(File.generated(config, room.page, content=page(room, found)))
    return files


def index(found: dict[str, Room]) -> str:
    """Every room in a line."""
    lines = ["# API", "", "Every public name, by room, from the docstrings of the code.", "", "| room | what it is |"]
    lines += ["|---|---|"]
    for room in found.values():
        file = room.page.removeprefix("api/")
        lines.append(f"| [`{room.path}`]({file}) | {_first(room.words)} |")
    return "\n".join(lines) + "\n"


def page(room: Room, found: dict[str, Room]) -> str:
    """The page of a room: its docstring, the rooms inside, and each of its names once."""
    first = owners(found)
    parts = [f"# {room.path}", room.words]
    if room.rooms:
        links = [f"[`{path}`]({_link(path, room, found)})" for path in room.rooms]
        parts.append(f"Rooms: {', '.join(links)}.")
    parts += [_entry(name, room, found, first[name.defined]) for name in room.names]
    return "\n\n".join(parts) + "\n"


def _entry(name: Name, room: Room, found: dict[str, Room], owner: Name) -> str:
    if name.word == "TABLE":
        return _table(name)
    if owner != name:
        target = found[owner.room].page.removeprefix("api/")
        there = f"[`{owner.public}`]({target}#{owner.public})"
        return f"## {name.word} {{ #{name.public} }}\n\nThe same as {there}, described there."
    return f"::: {name.defined}"


def _table(name: Name) -> str:
    table = getattr(importlib.import_module(name.room), name.word)
    lines = [f"## {name.word} {{ #{name.public} }}", "Members by the names that files, records and commands use."]
    if all(isinstance(inner, dict) for inner in table.values()):
        rows = [f"- {kind}: {', '.join(f'`{word}`' for word in inner)}" for kind, inner in table.items()]
        return "\n\n".join([*lines, "\n".join(rows)])
    return "\n\n".join([*lines, ", ".join(f"`{word}`" for word in table)])


def _link(path: str, room: Room, found: dict[str, Room]) -> str:
    return found[path].page.removeprefix("api/")


def _first(words: str) -> str:
    return " ".join(words.split("\n\n")[0].split())
