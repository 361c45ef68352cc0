"""The engine stays narrow: few members to a protocol, one place for each great deed; and the count can count."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "engine_shape.py"

SOUND = {
    "contracts.py": """
from typing import Protocol
class Rooted(Protocol):
    seed: int
    def start(self): ...
class Likelihood(Protocol):
    a: int; b: int; c: int; d: int; e: int; f: int; g: int; h: int
""",
    "engine/__init__.py": "from doxa.engine.stepper import Stepper",
    "engine/stepper.py": """
import typing
from typing import TypeVar
from doxa import contracts
T = TypeVar("T")
class Stepper(contracts.Rooted, typing.Protocol[T]):
    _hidden: int
    a: int
    b = 1
    @property
    def c(self): ...
    @c.setter
    def c(self, value): ...
    def d(self): ...
    async def e(self): ...
    def __call__(self): ...
class Plain:
    a: int; b: int; c: int; d: int; e: int; f: int; g: int; h: int
""",
    "engine/loop.py": """
import torch
from doxa.storage import sealed
def go(run, graph):
    run.stepper.step(1)  # and not run.stepper.step(2)
    "self.stepper.step(3)"
    run.stepper.steps(), run.optimiser.step()
    with torch.cuda.graph(graph):
        sealed.write(run.path)
""",
    "belief.py": "from doxa.storage import sealed\nsealed.write('elsewhere')",
}


@pytest.fixture
def count() -> Callable[..., int]:
    return runpy.run_path(str(SCRIPT))["main"]


def tree(folder: Path, **more: str) -> Path:
    """The source of a sound engine, with something added to its files."""
    for name, text in SOUND.items():
        path = folder / "doxa" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + more.get(path.stem, ""))
    return folder / "doxa"


def test_a_sound_engine_is_found_sound(count: Callable[..., int], tmp_path: Path, capsys) -> None:
    assert count(tree(tmp_path)) == 0
    lines = {line.split("  ")[0]: line.split()[-1] for line in capsys.readouterr().out.splitlines()}
    assert lines["places where one steps a stepper"] == "engine/loop.py:5"


@pytest.mark.parametrize(
    ("file", "added", "expected"),
    [
        ("contracts", "class Own(Rooted, Protocol):\n    a: int; b: int; c: int; d: int; e: int; f: int", "Own +8"),
        ("stepper", "class Wide(Stepper[int], typing.Protocol):\n    def f(self): ...", "Wide +8"),
        ("stepper", "from . import Stepper as Again\nclass Far(Again, typing.Protocol):\n    f: int", "Far +8"),
        ("loop", "def again(self):\n    self.run().stepper.step()", "stepper +2 "),
        ("belief", "\nimport torch\ntorch.cuda.graph(1)", "graph +2 "),
        ("loop", "sealed.write(2)", "checkpoint +2 "),
    ],
)
def test_what_is_too_much_is_found(
    file: str, added: str, expected: str, count: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert count(tree(tmp_path, **{file: added})) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.endswith("NOT AS IT SHOULD BE")]
    name, _, number = expected.partition(" +")
    assert name in line
    assert f" {number.strip()} " in line


def test_what_is_not_done_at_all_is_found(count: Callable[..., int], tmp_path: Path) -> None:
    source = tree(tmp_path)
    (source / "engine" / "loop.py").write_text("")
    assert count(source) == 1


def test_this_engine_is_as_narrow_as_it_should_be(count: Callable[..., int]) -> None:
    assert count() == 0
