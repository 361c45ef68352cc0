"""Did a change rename things and nothing else?  `python tools/same_code.py OLD NEW` compares syntax trees.

OLD and NEW are commits (NEW is the working tree where it is left out). Every Python file of one must be a file of the
other, moved perhaps, with the same tree but for identifiers:

- a variable has one new name wherever it is visible, and no two share one; what no scope of the file binds keeps its;
- an attribute or keyword becomes what a definition somewhere in the change became, and never another's in the file;
- imports of other projects are the same, alias included; those of this one follow what was moved and renamed;
- strings are the same, but for names that Python looks up (`getattr`, `__all__`, ...) and dotted paths of modules;
- docstrings may change word for word.

Imports and `__all__` may stand in another order. What was renamed is printed, then whatever else differs; the exit code
is 1 where anything does. That no use of an attribute was forgotten, mypy and the tests have to show.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from scopes import NAMES, Scope, ScopeTree

ROOT = Path(__file__).resolve().parents[1]
SEARCH_PATH = ("src", "tests", "tools", "benchmarks", "docs/hooks")  # whose files are imported by their paths below
WORD = re.compile(r"\w+(?:[./]\w+)*")  # dotted names and paths are one
DOTTED = re.compile(r"[A-Za-z_]\w*([.:][A-Za-z_]\w*)+")
ATTRIBUTES = {("Attribute", "attr"), ("keyword", "arg"), ("MatchClass", "kwd_attrs")}
DICT = ast.dump(ast.Name("dict", ast.Load()))  # whose keywords are keys
# Functions that are given the name of something as a string, and how many arguments that may be.
LOOKUPS = {"getattr": 2, "hasattr": 2, "setattr": 2, "delattr": 2, "attrgetter": 1, "parametrize": 1}


@dataclass
class Change:
    """What all files of a change say together: definitions with their new names, modules with their new paths."""

    packages: set[str]  # first parts of what can be imported of this project
    modules: dict[str, str] = field(default_factory=dict)
    definitions: set[tuple[str, str]] = field(default_factory=set)

    def add_move(self, old_path: str, new_path: str) -> None:
        old, new = module_name(old_path), module_name(new_path)
        self.packages.add(old.split(".")[0])
        if old != new:
            self.modules[old] = new
            self.definitions.add((old.rpartition(".")[2], new.rpartition(".")[2]))

    def explains_name(self, old: str, new: str) -> bool:
        return old == new or (old, new) in self.definitions

    def explains_path(self, old: str, new: str) -> bool:
        """Whether a dotted path became another because a module was moved or its last part was renamed."""
        is_ours = old.startswith(".") or old.split(".")[0] in self.packages
        (module, _, name), (new_module, _, new_name) = old.rpartition("."), new.rpartition(".")
        same_module = self.modules.get(module, module) == new_module
        renamed = self.modules.get(old) == new or (same_module and self.explains_name(name, new_name))
        return old == new or (is_ours and renamed)

    def explains_text(self, old: str, new: str, is_lookup: bool) -> bool:
        """Whether a string follows a rename: a name where Python looks one up, or the path of a module anywhere."""
        if DOTTED.fullmatch(old) and DOTTED.fullmatch(new):
            return self.explains_path(old.replace(":", "."), new.replace(":", "."))
        words, new_words = WORD.findall(old), WORD.findall(new)
        if not is_lookup or WORD.split(old) != WORD.split(new):
            return False
        pairs = zip(words, new_words, strict=True)
        return all(self.explains_name(*pair) or self.explains_path(*pair) for pair in pairs)


class FileComparison:
    """Two texts of one file, walked side by side: the renames between them, and the `problems` that are none."""

    def __init__(self, old: str, new: str) -> None:
        old_tree, new_tree = ast.parse(old), ast.parse(new)
        self.old_scopes, self.new_scopes = ScopeTree(old_tree), ScopeTree(new_tree)
        self.new_scope: dict[Scope, Scope] = {}
        self.names: dict[tuple[Scope, str], str] = {}
        self.old_names: dict[tuple[Scope, str], str] = {}
        self.attributes: dict[str, Counter[str]] = {}
        self.definitions: set[tuple[str, str]] = set()
        self.exports: list[tuple[list[str], list[str]]] = []  # `__all__` before and after
        self.texts: list[tuple[str, str, bool, str]] = []  # before, after, whether Python looks it up, and where
        self.lookups = set(_looked_up(old_tree))
        self.counts = Counter[tuple[str, str]]()
        self.notes: list[str] = []
        self.problems: list[str] = []
        self._compare(old_tree, new_tree, "file")

    def _compare(self, old: ast.AST, new: ast.AST, where: str) -> None:
        where = f"line {new.lineno}" if isinstance(new, ast.expr | ast.stmt) else where
        if type(old) is not type(new):
            self.problems.append(f"{where}: {type(old).__name__} became {type(new).__name__}")
            return
        if old in self.old_scopes.opened:
            self.new_scope[self.old_scopes.opened[old]] = self.new_scopes.opened[new]
        if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
            self._compare_constants(old, new, where)
        elif (docstring := _docstring(old)) is not None and (new_docstring := _docstring(new)) is not None:
            self._compare_docstrings(docstring, new_docstring, where)
        elif (names := _exports(old)) is not None and (new_names := _exports(new)) is not None:
            self.exports.append((names, new_names))
        else:
            if isinstance(old, ast.Call) and isinstance(new, ast.Call) and ast.dump(old.func) == DICT:
                keys = zip(old.keywords, new.keywords, strict=False)
                self.texts += [(str(a.arg), str(b.arg), False, where) for a, b in keys if a.arg != b.arg]
            self._compare_fields(old, new, where)

    def _compare_fields(self, old: ast.AST, new: ast.AST, where: str) -> None:
        for name in old._fields:
            before, after = _parts(getattr(old, name, None)), _parts(getattr(new, name, None))
            if len(before) != len(after):
                self.problems.append(f"{where}: {len(before)} parts became {len(after)}")
                continue
            for one, other in zip(before, after, strict=True):
                if isinstance(one, ast.AST) and isinstance(other, ast.AST):
                    self._compare(one, other, where)
                elif isinstance(one, str) and isinstance(other, str):
                    self._compare_identifiers(old, new, name, (one, other), where)
                elif one != other:
                    self.problems.append(f"{where}: {one!r} became {other!r}")

    def _compare_constants(self, old: ast.Constant, new: ast.Constant, where: str) -> None:
        if repr(old.value) == repr(new.value):  # == would take 1, 1.0 and True for one
            return
        if isinstance(old.value, str) and isinstance(new.value, str):
            self.texts.append((old.value, new.value, old in self.lookups, where))
        else:
            self.problems.append(f"{where}: {old.value!r} became {new.value!r}")

    def _compare_docstrings(self, old: str, new: str, where: str) -> None:
        """Prose may be wrapped anew."""
        gaps, new_gaps = ([" ".join(part.split()) for part in WORD.split(text)] for text in (old, new))
        if gaps != new_gaps:
            self.problems.append(f"{where}: the docstring {old!r} became {new!r}")

    def _compare_identifiers(self, old: ast.AST, new: ast.AST, name: str, pair: tuple[str, str], where: str) -> None:
        place, scope = (type(old).__name__, name), self.old_scopes.scope_of[old]
        if place not in NAMES | ATTRIBUTES:
            self.problems += [f"{where}: {pair[0]} became {pair[1]}"] if pair[0] != pair[1] else []
            return
        self.counts[pair] += 1
        binds = isinstance(getattr(old, "ctx", None), ast.Store) or isinstance(old, ast.stmt | ast.arg)
        if place in NAMES:
            binding, new_binding = scope.resolve(pair[0]), self.new_scopes.scope_of[new].resolve(pair[1])
            self._see_name(binding, new_binding, pair, where)
        if place in ATTRIBUTES or (binds and scope.is_class):
            self.attributes.setdefault(pair[0], Counter())[pair[1]] += 1
        is_local = isinstance(old, ast.Name) and not scope.is_class and scope is not self.old_scopes.module
        if binds and not is_local:
            self.definitions.add(pair)

    def _see_name(self, old: Scope | None, new: Scope | None, pair: tuple[str, str], where: str) -> None:
        """Hold a variable to one new name, and that name to one variable."""
        name, new_name = pair
        if old is None or new is None:
            if (old, name) != (new, new_name):
                self.problems.append(f"{where}: {name} became {new_name}, and this file does not bind both")
        elif self.new_scope.get(old) is not new:
            self.problems.append(f"{where}: {name} became {new_name}, which belongs to another scope")
        elif (first := self.names.setdefault((old, name), new_name)) != new_name:
            self.problems.append(f"{where}: {name} became {first} and {new_name}")
        elif (first := self.old_names.setdefault((new, new_name), name)) != name:
            self.problems.append(f"{where}: {first} and {name} both became {new_name}")

    def check(self, change: Change) -> None:
        """Find what no rename of the whole change explains."""
        for old, new in self.new_scope.items():
            self._check_imports(old, new, change)
        for (scope, name), new_name in self.names.items():
            if scope is self.old_scopes.module and new_name != name and new_name in scope.bound:
                self.problems.append(f"file: {name} became {new_name}, which others may import for what it was before")
        for before, after in self.exports:
            expected = [self.names.get((self.old_scopes.module, name), name) for name in before]
            if sorted(expected) != sorted(after):
                self.problems.append(f"__all__: {sorted(set(expected) ^ set(after))} do not follow the renames")
        for name, new_names in self.attributes.items():
            self._check_attribute(name, new_names, change)
        for text, new_text, is_lookup, where in self.texts:
            follows = change.explains_text(text, new_text, is_lookup)
            (self.notes if follows else self.problems).append(f"{where}: the text {text!r} became {new_text!r}")

    def _check_imports(self, old: Scope, new: Scope, change: Change) -> None:
        remaining, kept = Counter(new.imports), Counter(old.imports) & Counter(new.imports)
        remaining.subtract(kept)
        for local, _ in kept:
            self._see_name(old, new, (local, local), "imports")
        for local, path in (Counter(old.imports) - kept).elements():
            used_as = self.names.get((old, local))
            for new_local, new_path in remaining.elements():
                if used_as in (None, new_local) and change.explains_path(path, new_path):
                    remaining[new_local, new_path] -= 1
                    self._see_name(old, new, (local, new_local), "imports")
                    break
            else:
                self.problems.append(f"imports: {path} as {local} is gone")
        self.problems += [f"imports: {path} as {local} is new" for local, path in remaining.elements()]

    def _check_attribute(self, name: str, new_names: Counter[str], change: Change) -> None:
        renamed = [new_name for new_name in new_names if new_name != name]
        for new_name in renamed:
            if not change.explains_name(name, new_name):
                self.problems.append(f"file: the attribute {name} became {new_name}, and no definition did")
            elif new_name in self.attributes:
                before = self.attributes[new_name]
                state = "stays" if new_name in before else f"became {', '.join(before)}"
                self.problems.append(f"file: the attribute {name} became {new_name}, while {new_name} {state}")
        if renamed and len(new_names) > 1:
            self.notes.append(f"file: the attribute {name} became {', also '.join(sorted(new_names))}")


def _parts(value: object) -> list[object]:
    """What a field of a node holds, without imports, which are compared by scope."""
    parts = value if isinstance(value, list) else [value]
    return [part for part in parts if not isinstance(part, ast.Import | ast.ImportFrom)]


def _docstring(node: ast.AST) -> str | None:
    """The text of a statement that is nothing but text."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def _exports(node: ast.AST) -> list[str] | None:
    """The names in `__all__ = [...]`."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple):
        strings = [item.value for item in node.value.elts if isinstance(item, ast.Constant)]
        if ast.unparse(node.targets[0]) == "__all__" and len(strings) == len(node.value.elts):
            return [str(name) for name in strings]
    return None


def _looked_up(tree: ast.AST) -> Iterator[ast.AST]:
    """Strings that Python or pytest takes for names, or that are looked for in a message."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func).rpartition(".")[2]
            for argument in node.args[: LOOKUPS.get(function, 0)]:
                yield from [argument, *getattr(argument, "elts", [])]
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "match")


def module_name(path: str) -> str:
    """The dotted name by which a file is imported."""
    root = next((root for root in SEARCH_PATH if path.startswith(f"{root}/")), "")
    parts = PurePosixPath(path).relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass(frozen=True)
class FilePair:
    """A file before and after."""

    old_path: str
    new_path: str
    old: str
    new: str


def compare_files(pairs: Iterable[FilePair], packages: Iterable[str] = ()) -> dict[str, FileComparison]:
    """Every file of a change by its new path, checked against what all of them rename."""
    change, comparisons = Change(set(packages)), {}
    for pair in pairs:
        comparison = comparisons[pair.new_path] = FileComparison(pair.old, pair.new)
        change.add_move(pair.old_path, pair.new_path)
        change.definitions |= comparison.definitions
    for comparison in comparisons.values():
        comparison.check(change)
    return comparisons


def changed_paths(old: str, new: str | None) -> Iterator[tuple[str | None, str | None]]:
    """Files of both commits by their paths, those that were moved beside what they became."""
    diff_output = _git("diff", "--name-status", "-M20", *([old] if new is None else [old, new]), "--", "*.py")
    for line in diff_output.splitlines():
        status, *paths = line.split("\t")
        yield (None if status == "A" else paths[0]), (None if status == "D" else paths[-1])


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _read(commit: str | None, path: str) -> str:
    return (ROOT / path).read_text() if commit is None else _git("show", f"{commit}:{path}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", help="the working tree where it is left out")
    args = parser.parse_args()
    pairs, problems = [], []
    for before, after in changed_paths(args.old, args.new):
        if before is None or after is None:
            problems.append(f"{after or before}: {'new' if before is None else 'gone'}")
        else:
            pairs.append(FilePair(before, after, _read(args.old, before), _read(args.new, after)))
    files = _git("ls-tree", "-r", "--name-only", args.old).splitlines()
    comparisons = compare_files(pairs, {module_name(path).split(".")[0] for path in files if path.endswith(".py")})
    counts = sum((comparison.counts for comparison in comparisons.values()), Counter[tuple[str, str]]())
    for (name, new_name), times in sorted(counts.items()):
        if name != new_name:
            print(f"{name} -> {new_name}  ({times})")
    print("", "texts that follow a rename, and attributes with several new names", sep="\n")
    for path, comparison in comparisons.items():
        print(*(f"{path}: {note}\n" for note in comparison.notes), sep="", end="")
        problems += [f"{path}: {problem}" for problem in comparison.problems]
    print("", *(problems or ["nothing but names"]), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
