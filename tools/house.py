"""The house at a glance: `python tools/house.py` prints its rooms, their purpose and size, and who knows whom.

It counts what CONTRIBUTING promises of `src`: how many files lie at the root of the library and in a folder, how long
the longest file and the longest function are, kernels apart. The commands and the benchmarks are as many files as there
are of them. The exit code is 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
ROOT_FILES = 6  # of the library, at most
FOLDER_FILES = 15  # in a folder
FILE_LINES = 350
BODY_LINES = 60  # of a function, without signature and docstring
KERNELS = ("kernels",)  # folders that are as long as they have to be
LIBRARY = "doxa"
# Folders with as many files as they have answers to give: one for each command, one for each question.
ONE_FILE_EACH = {"doxa_cli", "doxa_bench"}


@dataclass(frozen=True)
class Function:
    """A function and how many lines its body has."""

    name: str
    lines: int


@dataclass(frozen=True)
class Folder:
    """A folder of a package: what it is for, its files with their lines, and the longest function of each."""

    path: Path
    purpose: str
    files: dict[str, int]
    functions: list[Function]

    @property
    def is_kernels(self) -> bool:
        return self.path.name in KERNELS


def folders(source: Path) -> list[Folder]:
    """Every folder below a source tree that holds Python files, packages in the order of their names."""
    parents = {path.parent for path in source.rglob("*.py") if "egg-info" not in str(path)}
    return [_read_folder(source, path) for path in sorted(parents - {source})]


def _read_folder(source: Path, path: Path) -> Folder:
    files = sorted(file for file in path.iterdir() if file.is_file())
    trees = {file: ast.parse(file.read_text()) for file in files if file.suffix == ".py"}
    init = trees.get(path / "__init__.py")
    purpose = (ast.get_docstring(init) or "" if init is not None else "").split("\n")[0]
    functions = [
        Function(f"{file.relative_to(source)}: {name}", lines)
        for file, tree in trees.items()
        for name, lines in _body_lengths(tree)
    ]
    return Folder(
        path.relative_to(source), purpose, {f.name: len(f.read_text().splitlines()) for f in trees}, functions
    )


def _body_lengths(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every function with the lines of its body, from its first statement to its last."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            yield node.name, (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def arrows(source: Path, package: str = LIBRARY) -> dict[str, Counter[str]]:
    """How many imports lead from each room of a package to each other one; imports for types alone count too."""
    import_counts: dict[str, Counter[str]] = {}
    for file in sorted((source / package).rglob("*.py")):
        here = _room(file.relative_to(source).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                parts = tuple(name.split("."))
                there = _room(parts) if parts[0] == package and len(parts) > 1 else here
                if there != here and (
                    (source / package / there).exists() or (source / package / f"{there}.py").exists()
                ):
                    import_counts.setdefault(here, Counter())[there] += 1
    return import_counts


def _room(parts: tuple[str, ...]) -> str:
    return parts[1] if len(parts) > 1 else ""


def broken_promises(source: Path, house: list[Folder]) -> list[str]:
    """What is larger than promised, in sentences."""
    violations = []
    root_files = _root_files(source)
    if len(root_files) > ROOT_FILES:
        violations.append(f"{LIBRARY} has {len(root_files)} files at its root, and {ROOT_FILES} are allowed")
    for folder in house:
        if len(folder.files) > FOLDER_FILES and str(folder.path) not in ONE_FILE_EACH:
            violations.append(f"{folder.path} has {len(folder.files)} files, and {FOLDER_FILES} are allowed")
        if not folder.purpose:
            violations.append(f"{folder.path} does not say what it is for")
        if folder.is_kernels:
            continue
        violations += [
            f"{folder.path / name} has {lines} lines, and {FILE_LINES} are allowed"
            for name, lines in folder.files.items()
            if lines > FILE_LINES
        ]
        violations += [
            f"{function.name} has a body of {function.lines} lines, and {BODY_LINES} are allowed"
            for function in folder.functions
            if function.lines > BODY_LINES
        ]
    return violations


def _root_files(source: Path) -> list[str]:
    return sorted(path.name for path in (source / LIBRARY).iterdir() if path.is_file())


def format_house(source: Path, house: list[Folder]) -> str:
    """The house as text."""
    root_files = _root_files(source)
    rows = [f"{LIBRARY}, {len(root_files)} files at its root: {', '.join(root_files)}", ""]
    for folder in house:
        name, lines = max(folder.files.items(), key=lambda item: item[1])
        rows.append(f"{folder.path!s:<46} {len(folder.files):>3}  {lines:>4} {name:<26} {folder.purpose}")
    counted = [folder for folder in house if not folder.is_kernels]
    lines, file = max((lines, str(folder.path / name)) for folder in counted for name, lines in folder.files.items())
    function = max((function for folder in counted for function in folder.functions), key=lambda one: one.lines)
    rows += [
        "",
        f"largest file      {lines} lines, {file}",
        f"largest function  {function.lines} lines, {function.name}",
    ]
    rows += ["", "arrows"]
    rows += [f"{here:<14} -> {', '.join(sorted(there))}" for here, there in sorted(arrows(source).items())]
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, nargs="?", default=SOURCE)
    source = parser.parse_args().source
    house = folders(source)
    print(format_house(source, house))
    violations = broken_promises(source, house)
    print("", *(violations or ["every promise is kept"]), sep="\n")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
