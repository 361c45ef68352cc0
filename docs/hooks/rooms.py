"""What is public in Doxa, read from its source: every room, and in each exactly the names of its `__all__`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
# Modules without an __all__ that users call by name: all that they define themselves is public.
OPEN = ("doxa.estimators", "doxa.contracts")


@dataclass(frozen=True)
class Name:
    """A public name: the room it is asked for in, and the module and word it is written down as."""

    room: str
    word: str
    module: str
    written: str

    @property
    def public(self) -> str:
        return f"{self.room}.{self.word}"

    @property
    def defined(self) -> str:
        return f"{self.module}.{self.written}"


@dataclass(frozen=True)
class Room:
    """A package or module with its docstring, its names in the order of a page, and the rooms it leads to."""

    path: str
    words: str
    names: tuple[Name, ...]
    rooms: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        return f"api/{self.path.removeprefix('doxa.')}.md"


def rooms(source: Path = SOURCE) -> dict[str, Room]:
    """Every room by its path: `doxa` first, then the open modules, then the packages that have an `__all__`."""
    packages = {_dotted(p.parent, source): p for p in sorted((source / "doxa").rglob("__init__.py"))}
    found = {"doxa": _package("doxa", packages["doxa"], packages)}
    for path in OPEN:
        found[path] = _module(path, source / f"{path.replace('.', '/')}.py")
    for path, file in packages.items():
        room = _package(path, file, packages)
        if room.names:
            found.setdefault(path, room)
    return found


def owners(found: dict[str, Room]) -> dict[str, Name]:
    """For each object, by where it is defined, the one name under which it is described: the first room's."""
    first: dict[str, Name] = {}
    for room in found.values():
        for name in room.names:
            first.setdefault(name.defined, name)
    return first


def _package(path: str, file: Path, packages: dict[str, Path]) -> Room:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    public = _all(tree)
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    names, inner = [], []
    for word in public:
        module, written = imported.get(word, (path, word))
        if f"{module}.{written}" in packages and f"{module}.{written}" == f"{path}.{word}":
            inner.append(f"{path}.{word}")
        else:
            names.append(Name(path, word, module, written))
    return Room(path, ast.get_docstring(tree) or "", _ordered(names), tuple(inner))


def _module(path: str, file: Path) -> Room:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    words = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]
    public = _all(tree) or words
    return Room(path, ast.get_docstring(tree) or "", tuple(Name(path, w, path, w) for w in public))


def _all(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return []


def _ordered(names: list[Name]) -> tuple[Name, ...]:
    """What is called comes first, then the types, then constants; otherwise as `__all__` has them."""
    return tuple(sorted(names, key=lambda n: (n.word.isupper(), n.word[0].isupper())))


def _dotted(folder: Path, source: Path) -> str:
    return ".".join(folder.relative_to(source).parts)
