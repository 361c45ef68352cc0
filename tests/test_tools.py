"""The tools that watch over this repository: what they promise of it, and what they would not let pass."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools"


@pytest.fixture(autouse=True)
def _tools_are_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


def compare(old: str, new: str, *others: tuple[str, str]) -> list[str]:
    """What is more than a rename between two texts of one file, in a change that has other files too."""
    from same_code import FilePair, compare_files

    pairs = [FilePair(f"src/doxa/part{i}.py", f"src/doxa/part{i}.py", *texts) for i, texts in enumerate(others)]
    comparisons = compare_files([FilePair("src/doxa/one.py", "src/doxa/one.py", old, new), *pairs])
    return [problem for comparison in comparisons.values() for problem in comparison.problems]


RENAMED_FIELD = ("class Q:\n    mean: int\n", "class Q:\n    centre: int\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(q): return q.mean + q.scale", "def f(q): return q.scale + q.mean"),
        ("def f(q): return q.mean + q.scale", "def f(q): return q.scale + q.scale"),
        ("def f(a, b): return a - a", "def f(a, b): return a - b"),
        ("def f(a, b): return a - b", "def f(a, b): return a - a"),
        ("from torch import sin", "from torch import cos as sin"),
        ("from torch import cos, sin\nsin(1)", "from torch import cos, sin\ncos(1)"),
        ("import numpy as np", "import torch as np"),
        ("x = {'mean': 1}", "x = {'scale': 1}"),
        ("x = float('0.5')", "x = float('0.7')"),
        ("x = f'{1} mean'", "x = f'{1} scale'"),
        ("x = 1", "x = True"),
        ("x = 0.0", "x = -0.0"),
        ("x = min(1, 2)", "x = max(1, 2)"),
        ("x = 1\ndef f(y): return x", "x = 1\ndef f(x): return x"),
        ("def f(x): return [x for y in x]", "def f(x): return [y for y in x]"),
        ("def f(): ...\ndef g(): ...", "def g(): ...\ndef f(): ..."),
        ("f(1)\n", "f(1, 2)\n"),
        ("__all__ = ['f']\ndef f(): ...\ndef g(): ...", "__all__ = ['g']\ndef f(): ...\ndef g(): ..."),
        ("def f(q): return q.sin()", "def f(q): return q.cos()"),
    ],
)
def test_what_does_more_than_rename_is_reported(old: str, new: str) -> None:
    assert compare(old, new)


def test_a_swap_of_attributes_is_reported_even_where_two_classes_explain_it() -> None:
    classes = [
        ("class A:\n    mean: int", "class A:\n    scale: int"),
        ("class B:\n    scale: int", "class B:\n    mean: int"),
    ]
    assert compare("", "", *classes) == []
    assert compare("def f(q): return q.mean + q.scale", "def f(q): return q.scale + q.mean", *classes)


def test_a_key_does_not_follow_an_attribute() -> None:
    assert compare("x = {'mean': 1}", "x = {'centre': 1}", RENAMED_FIELD)
    assert compare("x = dict(mean=1)", "x = dict(centre=1)", RENAMED_FIELD)


def test_an_import_follows_what_was_renamed_where_it_is_defined_and_nothing_else() -> None:
    defined = ("def f(): ...\ndef h(): ...", "def g(): ...\ndef h(): ...")
    assert not compare("from doxa.part0 import f\nf()", "from doxa.part0 import g\ng()", defined)
    assert compare("from doxa.part0 import f\nf()", "from doxa.part0 import h\nh()", defined)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(a): return a\ndef g(a): return a", "def f(b): return b\ndef g(c): return c"),  # each function its own
        ("x = 1\ndef f(): return x", "y = 1\ndef f(): return y"),
        ("def f(x): return [x for x in x]", "def f(x): return [y for y in x]"),  # the first x is the comprehension's
        ("def f():\n    x = 1\n    def g(): return x", "def f():\n    y = 1\n    def g(): return y"),
        ("def f(q):\n    'Of q.'\n    return q", "def f(p):\n    'Of p.'\n    return p"),
        ("import os\nimport sys", "import sys\nimport os"),
        ("__all__ = ['a', 'f']\ndef a(): ...\ndef f(): ...", "__all__ = ['f', 'z']\ndef z(): ...\ndef f(): ..."),
        ("class Q:\n    mean: int\nQ(mean=1).mean", "class Q:\n    centre: int\nQ(centre=1).centre"),
        ("class Q:\n    mean: int\ngetattr(Q, 'mean')", "class Q:\n    centre: int\ngetattr(Q, 'centre')"),
    ],
)
def test_renames_are_nothing_but_names(old: str, new: str) -> None:
    assert compare(old, new) == []


def test_an_attribute_follows_a_class_of_another_file() -> None:
    assert compare("def f(q): return q.mean", "def f(q): return q.centre", RENAMED_FIELD) == []


def test_imports_and_texts_follow_a_file_that_was_moved() -> None:
    from same_code import FilePair, compare_files

    user = "from doxa.{0} import f\nMODULE = 'doxa.{0}'\nf()"
    moved = FilePair("src/doxa/here.py", "src/doxa/room/there.py", "def f(): ...", "def f(): ...")
    files = [moved, FilePair("src/doxa/one.py", "src/doxa/one.py", user.format("here"), user.format("room.there"))]
    assert [comparison.problems for comparison in compare_files(files).values()] == [[], []]
    files[1] = FilePair("src/doxa/one.py", "src/doxa/one.py", user.format("here"), user.format("room.elsewhere"))
    assert compare_files(files)["src/doxa/one.py"].problems


def test_every_promise_of_the_house_is_kept() -> None:
    from house import SOURCE, broken_promises, folders

    assert broken_promises(SOURCE, folders(SOURCE)) == []


def test_a_folder_with_too_many_files_breaks_a_promise(tmp_path: Path) -> None:
    from house import FOLDER_FILES, broken_promises, folders

    for name in ("doxa", "doxa_replicate", "doxa_cli"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('"""A room."""\n')
    for name in ("doxa_replicate", "doxa_cli"):
        for i in range(FOLDER_FILES):
            (tmp_path / name / f"part{i}.py").write_text("")
    (violation,) = broken_promises(tmp_path, folders(tmp_path))
    assert violation == f"doxa_replicate has {FOLDER_FILES + 1} files, and {FOLDER_FILES} are allowed"


def test_the_picture_of_the_rooms_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    from picture import main

    monkeypatch.setattr(sys, "argv", ["picture.py", "--check"])
    assert main() == 0, "python tools/picture.py draws it anew"
