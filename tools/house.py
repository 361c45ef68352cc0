"""The house at a glance: `python tools/house.py` prints its rooms, their purpose and size, and who knows whom.

It counts what CONTRIBUTING promises of `src`: how many files lie at the root of the library and in a folder, how long
the longest file and the longest function are, kernels apart. The exit code is 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT_FILES = 6  # of the library, at most
FOLDER_FILES = 15  # in a folder of it
FILE_LINES = 350
BODY_LINES = 60  # of a function, without signature and docstring
KERNELS = ("kernels",)  # folders that are as long as they have to be
LIBRARY = "doxa"


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
    return [_folder(source, path) for path in _with_files(source)]


def _with_files(source: Path) -> list[Path]:
    inside = {path.parent for path in source.rglob("*.py") if "egg-info" not in str(path)}
    return sorted(inside - {source})


def _folder(source: Path, path: Path) -> Folder:
    files = sorted(file for file in path.iterdir() if file.is_file())
    trees = {file: ast.parse(file.read_text()) for file in files if file.suffix == ".py"}
    init = trees.get(path / "__init__.py")
    purpose = (ast.get_docstring(init) or "" if init is not None else "").split("\n")[0]
    functions = [
        Function(f"{file.relative_to(source)}: {name}", lines)
        for file, tree in trees.items()
        for name, lines in _bodies(tree)
    ]
    return Folder(
        path.relative_to(source), purpose, {f.name: len(f.read_text().splitlines()) for f in trees}, functions
    )


def _bodies(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every function with the lines of its body, from its first statement to its last."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            yield node.name, (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def arrows(source: Path, package: str = LIBRARY) -> dict[str, Counter[str]]:
    """How many imports lead from each room of a package to each other one; imports for types alone count too."""
    found: dict[str, Counter[str]] = {}
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
                    found.setdefault(here, Counter())[there] += 1
    return found


def _room(parts: tuple[str, ...]) -> str:
    return parts[1] if len(parts) > 1 else ""


def broken(source: Path, found: list[Folder]) -> list[str]:
    """The promises that are not kept."""
    root = [path.name for path in (source / LIBRARY).iterdir() if path.is_file()]
    words = []
    if len(root) > ROOT_FILES:
        words.append(f"{LIBRARY} has {len(root)} files at its root, and {ROOT_FILES} are allowed")
    for folder in found:
        inside = folder.path.parts[0] == LIBRARY and len(folder.path.parts) > 1
        if inside and len(folder.files) > FOLDER_FILES:
            words.append(f"{folder.path} has {len(folder.files)} files, and {FOLDER_FILES} are allowed")
        if not folder.purpose and folder.path.parts[0] == LIBRARY:
            words.append(f"{folder.path} does not say what it is for")
        if folder.is_kernels:
            continue
        words += [
            f"{folder.path / name} has {lines} lines, and {FILE_LINES} are allowed"
            for name, lines in folder.files.items()
            if lines > FILE_LINES
        ]
        words += [
            f"{one.name} has a body of {one.lines} lines, and {BODY_LINES} are allowed"
            for one in folder.functions
            if one.lines > BODY_LINES
        ]
    return words


def shown(source: Path, found: list[Folder]) -> str:
    """The house as text."""
    root = sorted(path.name for path in (source / LIBRARY).iterdir() if path.is_file())
    lines = [f"{LIBRARY}, {len(root)} files at its root: {', '.join(root)}", ""]
    for folder in found:
        longest = max(folder.files.items(), key=lambda item: item[1], default=("", 0))
        lines.append(f"{folder.path!s:<46} {len(folder.files):>3}  {longest[1]:>4} {longest[0]:<26} {folder.purpose}")
    usual = [folder for folder in found if not folder.is_kernels]
    file = max(((lines, f"{f.path / name}") for f in usual for name, lines in f.files.items()), default=(0, ""))
    body = max((one for f in usual for one in f.functions), key=lambda one: one.lines)
    lines += ["", f"largest file      {file[0]} lines, {file[1]}", f"largest function  {body.lines} lines, {body.name}"]
    lines += ["", "arrows"]
    lines += [f"{here:<14} -> {', '.join(sorted(there))}" for here, there in sorted(arrows(source).items())]
    return "\n".join(lines)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("source", type=Path, nargs="?", default=Path(__file__).resolve().parents[1] / "src")
    source = words.parse_args().source
    found = folders(source)
    print(shown(source, found))
    wrong = broken(source, found)
    print("", *(wrong or ["every promise is kept"]), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
