"""Did a change rename things and nothing else?  `python tools/same_code.py OLD NEW` compares syntax trees.

OLD and NEW are commits (NEW is the working tree where it is left out). Every Python file of one must be a file of the
other, moved perhaps, with the same tree but for identifiers: names, attributes, arguments, modules, and words within
strings and docstrings. No new name may have been another's in the same function, no attribute one that the same file
defined already.
Imports may stand in another order. What was renamed is printed, then whatever else differs; the exit code is 1 where
anything does.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORD = re.compile(r"\w+(?:[./]\w+)*")  # dotted names and paths are one


class Differs(Exception):
    """What is not the same but for a name."""


class Renames:
    """Identifiers of one file with their new names, by what they are: `name`, `attribute` or a word of `text`.

    A name belongs to the outermost function that it stands in (to the class or file where it stands in none), an
    attribute to the file.
    """

    def __init__(self) -> None:
        self.new: dict[tuple[str, str, str], Counter[str]] = {}

    def see(self, kind: str, scope: str, old: str, new: str) -> None:
        key = (kind, scope if kind == "name" else "", old)
        self.new.setdefault(key, Counter())[new] += 1

    def changed(self) -> Iterator[tuple[str, str, int]]:
        for (_, _, old), news in self.new.items():
            yield from ((old, new, times) for new, times in news.items() if new != old)

    def check(self, defined: set[str]) -> None:
        """Refuse a new name that was another's already: what meant two things would mean one.

        Of attributes only those count that the file itself `defined`: a method may be called as a library's is.
        """
        taken = {key for key, news in self.new.items() if key[2] in news and key[0] != "text"}
        taken = {key for key in taken if key[0] == "name" or key[2] in defined}
        for (kind, scope, old), news in self.new.items():
            clash = [new for new in news if new != old and (kind, scope, new) in taken]
            if clash:
                raise Differs(f"{scope or 'file'}: {old} became {clash[0]}, which was another {kind}'s already")


# Where a syntax tree has identifiers that do not stand for variables.
ATTRIBUTES = {("Attribute", "attr"), ("keyword", "arg"), ("FunctionDef", "name"), ("ClassDef", "name")}


def compare(old: ast.AST, new: ast.AST, renames: Renames, where: str = "", scope: str = "") -> None:
    """Walk two trees side by side."""
    if isinstance(new, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and "()" not in scope:
        scope = f"{scope}.{new.name}".lstrip(".") + ("" if isinstance(new, ast.ClassDef) else "()")
    if type(old) is not type(new):
        raise Differs(f"{where}: {type(old).__name__} became {type(new).__name__}")
    here = f"line {getattr(new, 'lineno', '?')}" if hasattr(new, "lineno") else where
    for field in old._fields:
        before, after = getattr(old, field, None), getattr(new, field, None)
        kind = "attribute" if (type(old).__name__, field) in ATTRIBUTES else "name"
        kind = "text" if isinstance(old, ast.Constant) else kind
        several = isinstance(before, list) and isinstance(after, list)
        parts = _pairs(before, after, here) if several else [(before, after)]
        for one, other in parts:
            if isinstance(one, ast.AST) and isinstance(other, ast.AST):
                compare(one, other, renames, here, scope)
            elif isinstance(one, str) and isinstance(other, str):
                _words(kind, one, other, renames, here, scope)
            elif one != other or type(one) is not type(other):
                raise Differs(f"{here}: {one!r} became {other!r}")


def _pairs(before: list[object], after: list[object], where: str) -> list[tuple[object, object]]:
    before, after = _without_imports(before), _without_imports(after)
    if len(before) != len(after):
        raise Differs(f"{where}: {len(before)} parts became {len(after)}")
    return list(zip(before, after, strict=True))


def _words(kind: str, before: str, after: str, renames: Renames, where: str, scope: str) -> None:
    """Identifiers, or text in which some have changed; prose may be wrapped anew."""
    olds, news = WORD.findall(before), WORD.findall(after)
    if len(olds) != len(news) or _between(before) != _between(after):
        raise Differs(f"{where}: {before!r} became {after!r}")
    for old, new in zip(olds, news, strict=True):
        renames.see(kind, scope, old, new)


def _between(text: str) -> list[str]:
    return [" ".join(part.split()) for part in WORD.split(text)]


def _without_imports(body: list[object]) -> list[object]:
    """Statements without the imports, which `imported` compares."""
    return [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]


def imported(tree: ast.AST) -> int:
    """How many names a file imports."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum(len(node.names) for node in nodes)


def same(old: str, new: str) -> Renames:
    """The renames between two texts of one file; raises where there is more to it."""
    renames, before, after = Renames(), ast.parse(old), ast.parse(new)
    compare(before, after, renames)
    if imported(before) != imported(after):
        raise Differs(f"{imported(before)} imported names became {imported(after)}")
    renames.check(defined(before))
    return renames


def defined(tree: ast.AST) -> set[str]:
    """Functions, classes, fields and attributes of `self` that a file defines."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def pairs(old: str, new: str | None) -> Iterator[tuple[str | None, str | None]]:
    """Files of both commits by their paths, those that were moved beside what they became."""
    between = [old] if new is None else [old, new]
    told = _git("diff", "--name-status", "-M20", *between, "--", "*.py")
    for line in told.splitlines():
        kind, *paths = line.split("\t")
        if kind.startswith("R"):
            yield paths[0], paths[1]
        elif kind == "A":
            yield None, paths[0]
        elif kind == "D":
            yield paths[0], None
        else:
            yield paths[0], paths[0]


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _text(commit: str | None, path: str) -> str:
    return (ROOT / path).read_text() if commit is None else _git("show", f"{commit}:{path}")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("old")
    asked.add_argument("new", nargs="?", help="the working tree where it is left out")
    given = asked.parse_args()
    every, wrong = Counter[tuple[str, str]](), []
    for before, after in pairs(given.old, given.new):
        if before is None or after is None:
            wrong.append(f"{after or before}: {'new' if before is None else 'gone'}")
            continue
        try:
            renames = same(_text(given.old, before), _text(given.new, after))
        except Differs as found:
            wrong.append(f"{after}: {found}")
            continue
        for old, new, times in renames.changed():
            every[old, new] += times
    for (name, became), times in sorted(every.items()):
        print(f"{name} -> {became}  ({times})")
    print("", *(wrong or ["nothing but names"]), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
