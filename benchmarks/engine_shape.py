"""Is the engine as narrow as it should be? Counts what its protocols ask for, and where its few great deeds are done.

    python benchmarks/engine_shape.py               of this checkout; exit code 1 where a count is not as it should be
    python benchmarks/engine_shape.py PATH/src/doxa

The source is read, not run. A member counts where its name is public, once however often it is written, and with those
that a protocol inherits from classes of this package.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "doxa"

# Where the engine's protocols stand, and how many members one of them may have.
PROTOCOLS = ("engine/**/*.py", "contracts.py")
MOST = 7
# Protocols that stand there too, and are none of the engine's.
OTHERS = ("Likelihood",)


@dataclass(frozen=True)
class Deed:
    """Something that is done in one place alone: by calls whose dotted name fits, in files that fit."""

    what: str
    call: str
    files: str = "**/*.py"
    count: int = 1


DEEDS = (
    Deed("steps a stepper", r"(.+\.)?stepper\.step"),
    Deed("records a CUDA graph", r"(.+\.)?cuda\.graph"),
    Deed("writes a checkpoint", r"(.+\.)?files\.write", "engine/**/*.py"),
)


@dataclass(frozen=True)
class Row:
    """A line of the table: what was counted, how much of it there is, how much there may be, and where."""

    what: str
    count: int
    wanted: str
    fine: bool
    where: str = ""


@dataclass(frozen=True)
class Module:
    """A file as its syntax tree, with what its imports call other modules' names."""

    name: str
    tree: ast.Module
    imported: dict[str, str]
    classes: dict[str, ast.ClassDef]


def module(path: Path, source: Path) -> Module:
    parts = (source.name, *path.relative_to(source).with_suffix("").parts)
    package = parts[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {a.asname or a.name: a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            start = ".".join(part for part in (above, node.module) if part)
            imported |= {a.asname or a.name: f"{start}.{a.name}" for a in node.names}
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    name = ".".join(package if parts[-1] == "__init__" else parts)
    return Module(name, tree, imported, classes)


def dotted(node: ast.expr) -> str:
    """A name with its dots, `?` for what is no name: `self.stepper.step`, `?.step`."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Subscript):  # a generic's own name
        return dotted(node.value)
    return node.id if isinstance(node, ast.Name) else "?"


def meant(name: str, own: Module) -> str:
    """What a dotted name stands for in a module, from the package on."""
    if name in own.classes:
        return f"{own.name}.{name}"
    first, dot, rest = name.partition(".")
    return f"{own.imported.get(first, first)}{dot}{rest}"


def bases(node: ast.ClassDef, own: Module) -> list[str]:
    return [meant(dotted(base), own) for base in node.bases]


def is_protocol(node: ast.ClassDef, own: Module) -> bool:
    return any(name.rpartition(".")[2] == "Protocol" for name in bases(node, own))


def written(node: ast.ClassDef) -> set[str]:
    """The public names that the body of a class gives."""
    found: set[str] = set()
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(part.name)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            found.add(part.target.id)
        elif isinstance(part, ast.Assign):
            found |= {target.id for target in part.targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def members(node: ast.ClassDef, own: Module, modules: dict[str, Module]) -> set[str]:
    """The public names of a class, inherited ones too."""
    found = written(node)
    for name in bases(node, own):
        where, _, last = name.rpartition(".")
        there = modules.get(where)
        # A package may hand on what one of its modules has.
        while there is not None and last not in there.classes and last in there.imported:
            where, _, last = there.imported[last].rpartition(".")
            there = modules.get(where)
        if there is not None and last in there.classes and there.classes[last] is not node:
            found |= members(there.classes[last], there, modules)
    return found


def protocols(source: Path) -> Iterator[Row]:
    modules = {found.name: found for found in (module(path, source) for path in sorted(source.rglob("*.py")))}
    for pattern in PROTOCOLS:
        for path in sorted(source.glob(pattern)):
            own = module(path, source)
            for name, node in own.classes.items():
                if is_protocol(node, own) and name not in OTHERS:
                    found = sorted(members(node, own, modules))
                    fine = len(found) <= MOST
                    yield Row(f"members of {name}", len(found), f"at most {MOST}", fine, ", ".join(found))


def deeds(source: Path) -> Iterator[Row]:
    for deed in DEEDS:
        places = [
            f"{path.relative_to(source)}:{node.lineno}"
            for path in sorted(source.glob(deed.files))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))
            if isinstance(node, ast.Call) and re.fullmatch(deed.call, dotted(node.func))
        ]
        fine = len(places) == deed.count
        yield Row(f"places where one {deed.what}", len(places), f"exactly {deed.count}", fine, ", ".join(places))


def main(source: Path = SOURCE) -> int:
    """Print the table; 1 where something in it is not as it should be, else 0."""
    found = [*protocols(source), *deeds(source)]
    width = max(len(row.what) for row in found)
    for row in found:
        verdict = "" if row.fine else "  NOT AS IT SHOULD BE"
        print(f"{row.what:{width}}  {row.count:2}  {row.wanted:9}  {row.where}{verdict}")
    return 0 if all(row.fine for row in found) else 1


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
