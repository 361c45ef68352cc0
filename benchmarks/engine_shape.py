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
class UniqueCall:
    """Something that is done in one place alone: by calls whose dotted name fits, in files that fit."""

    what: str
    call: str
    files: str = "**/*.py"
    count: int = 1


UNIQUE_CALLS = (
    UniqueCall("steps a stepper", r"(.+\.)?stepper\.step"),
    UniqueCall("records a CUDA graph", r"(.+\.)?cuda\.graph"),
    UniqueCall("writes a checkpoint", r"(.+\.)?sealed\.write", "engine/**/*.py"),
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


def resolve_name(name: str, scope: Module) -> str:
    """What a dotted name stands for in a module, from the package on."""
    if name in scope.classes:
        return f"{scope.name}.{name}"
    first, dot, rest = name.partition(".")
    return f"{scope.imported.get(first, first)}{dot}{rest}"


def bases(node: ast.ClassDef, scope: Module) -> list[str]:
    return [resolve_name(dotted(base), scope) for base in node.bases]


def is_protocol(node: ast.ClassDef, scope: Module) -> bool:
    return any(name.rpartition(".")[2] == "Protocol" for name in bases(node, scope))


def declared_names(node: ast.ClassDef) -> set[str]:
    """The public names that the body of a class gives."""
    names: set[str] = set()
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(part.name)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            names.add(part.target.id)
        elif isinstance(part, ast.Assign):
            names |= {target.id for target in part.targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def members(node: ast.ClassDef, scope: Module, modules: dict[str, Module]) -> set[str]:
    """The public names of a class, inherited ones too."""
    names = declared_names(node)
    for name in bases(node, scope):
        module_name, _, last = name.rpartition(".")
        owner = modules.get(module_name)
        # A package may hand on what one of its modules has.
        while owner is not None and last not in owner.classes and last in owner.imported:
            module_name, _, last = owner.imported[last].rpartition(".")
            owner = modules.get(module_name)
        if owner is not None and last in owner.classes and owner.classes[last] is not node:
            names |= members(owner.classes[last], owner, modules)
    return names


def protocols(source: Path) -> Iterator[Row]:
    modules = {loaded.name: loaded for loaded in (module(path, source) for path in sorted(source.rglob("*.py")))}
    for pattern in PROTOCOLS:
        for path in sorted(source.glob(pattern)):
            scope = module(path, source)
            for name, node in scope.classes.items():
                if is_protocol(node, scope) and name not in OTHERS:
                    names = sorted(members(node, scope, modules))
                    fine = len(names) <= MOST
                    yield Row(f"members of {name}", len(names), f"at most {MOST}", fine, ", ".join(names))


def unique_calls(source: Path) -> Iterator[Row]:
    for unique_call in UNIQUE_CALLS:
        places = [
            f"{path.relative_to(source)}:{node.lineno}"
            for path in sorted(source.glob(unique_call.files))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))
            if isinstance(node, ast.Call) and re.fullmatch(unique_call.call, dotted(node.func))
        ]
        fine = len(places) == unique_call.count
        yield Row(
            f"places where one {unique_call.what}", len(places), f"exactly {unique_call.count}", fine, ", ".join(places)
        )


def main(source: Path = SOURCE) -> int:
    """Print the table; 1 where something in it is not as it should be, else 0."""
    rows = [*protocols(source), *unique_calls(source)]
    width = max(len(row.what) for row in rows)
    for row in rows:
        verdict = "" if row.fine else "  NOT AS IT SHOULD BE"
        print(f"{row.what:{width}}  {row.count:2}  {row.wanted:9}  {row.where}{verdict}")
    return 0 if all(row.fine for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
