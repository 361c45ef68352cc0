"""What is public in Doxa, read from its source: every room, and in each exactly the names that it offers.

Those are the names of its `__all__`; in a room whose members enrol by a line, what it imports `as` itself, its table
and `register`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
# Modules without an __all__ that users call by name: all that they define themselves is public.
OPEN = ("doxa.contracts",)


@dataclass(frozen=True)
class Name:
    """A public name: the room it is asked for in, and the module and word it is written down as."""

    room: str
    short_name: str
    module: str
    defined_name: str

    @property
    def public(self) -> str:
        return f"{self.room}.{self.short_name}"

    @property
    def defined(self) -> str:
        return f"{self.module}.{self.defined_name}"


@dataclass(frozen=True)
class Room:
    """A package or module with its docstring, its names in the order of a page, and the rooms it leads to."""

    path: str
    docstring: str
    names: tuple[Name, ...]
    rooms: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        return f"api/{self.path.removeprefix('doxa.')}.md"


def rooms(source: Path = SOURCE) -> dict[str, Room]:
    """Every room by its path: `doxa` first, then the open modules, then the packages that have an `__all__`."""
    packages = {_dotted(p.parent, source): p for p in sorted((source / "doxa").rglob("__init__.py"))}
    rooms_by_path = {"doxa": _package("doxa", packages["doxa"], packages)}
    for path in OPEN:
        rooms_by_path[path] = _module(path, source / f"{path.replace('.', '/')}.py")
    for path, file in packages.items():
        room = _package(path, file, packages)
        if room.names:
            rooms_by_path.setdefault(path, room)
    return rooms_by_path


def owners(rooms_by_path: dict[str, Room]) -> dict[str, Name]:
    """For each object, by where it is defined, the one name under which it is described: the first room's."""
    owner_by_object: dict[str, Name] = {}
    for room in rooms_by_path.values():
        for name in room.names:
            owner_by_object.setdefault(name.defined, name)
    return owner_by_object


def _package(path: str, file: Path, packages: dict[str, Path]) -> Room:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    public = _all(tree) or _enrolled(tree)
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    names, inner = [], []
    for short_name in public:
        module, defined_name = imported.get(short_name, (path, short_name))
        defined_name = _aliased(file.parents[len(path.split(".")) - 1].parent, module, defined_name)
        if f"{module}.{defined_name}" in packages and f"{module}.{defined_name}" == f"{path}.{short_name}":
            inner.append(f"{path}.{short_name}")
        else:
            names.append(Name(path, short_name, module, defined_name))
    return Room(path, ast.get_docstring(tree) or "", _ordered(names), tuple(inner))


def _module(path: str, file: Path) -> Room:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    defined_names = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]
    public = _all(tree) or defined_names
    return Room(path, ast.get_docstring(tree) or "", tuple(Name(path, w, path, w) for w in public))


def _all(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return []


def _enrolled(tree: ast.Module) -> list[str]:
    """What a room without an `__all__` offers: `import name as name`, and what it defines itself."""
    names = [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    defined = [
        node.target.id for node in tree.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    defined += [
        t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    ]
    defined += [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [*names, *(name for name in defined if name != "EXAMPLES" and not name.startswith("_"))] if names else []


def _aliased(source: Path, module: str, name: str) -> str:
    """What a name stands for in its module: `laplace = Laplace` is described as the class."""
    file = source / f"{module.replace('.', '/')}.py"
    for node in ast.parse(file.read_text(encoding="utf-8")).body if file.exists() else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name):
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
            return node.value.id
    return name


def _ordered(names: list[Name]) -> tuple[Name, ...]:
    """What is called comes first, then the types, then constants; otherwise as `__all__` has them."""
    return tuple(sorted(names, key=lambda n: (n.short_name.isupper(), n.short_name[0].isupper())))


def _dotted(folder: Path, source: Path) -> str:
    return ".".join(folder.relative_to(source).parts)
