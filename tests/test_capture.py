"""What happens to a step that cannot be recorded, without a GPU: tests/test_cuda.py has the recording itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from doxa import capture, optimisers
from doxa.feed import InMemory
from doxa.probe import Uses

SOURCE = InMemory(torch.zeros(4, 2), torch.zeros(4), 2)


def asked(steps: int, **uses: Any) -> tuple[Any, Any]:
    """What is made of a training on a GPU, and the training."""
    start = SimpleNamespace(device=SimpleNamespace(type="cuda"))
    problem: Any = SimpleNamespace(start=start, uses=Uses({}, uses.pop("other", {}), **uses))
    training: Any = SimpleNamespace(passes=SimpleNamespace(compiled=False))
    made = capture.captured(problem, training, optimisers.adam(), SOURCE, torch.zeros(1), steps)
    return made, training


def recorder(monkeypatch: pytest.MonkeyPatch, fails: tuple[bool, ...]) -> list[bool]:
    """Recordings that fail for these; a note of each attempt, compiled or not."""
    tried: list[bool] = []

    def made(training: Any, optimiser: Any, source: Any, words: Any, compiled: bool) -> str:
        tried.append(compiled)
        training.passes.compiled = compiled
        if compiled in fails:
            raise RuntimeError("no\nmore of it")
        return "recording"

    monkeypatch.setattr(capture, "Captured", made)
    return tried


def test_nets_are_compiled_only_where_it_repays(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = recorder(monkeypatch, fails=())
    assert asked(capture.REPAYS)[0] == asked(capture.REPAYS - 1)[0] == "recording"
    assert tried == [True, False]


def test_a_net_that_does_not_compile_is_recorded_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = recorder(monkeypatch, fails=(True,))
    made, training = asked(capture.REPAYS)
    assert made == "recording"
    assert tried == [True, False]
    assert not training.passes.compiled


def test_what_cannot_be_recorded_runs_as_written_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder(monkeypatch, fails=(True, False))
    with pytest.warns(UserWarning, match=r"cannot be recorded \(no\)"):
        made, training = asked(capture.REPAYS)
    assert made is None
    assert not training.passes.compiled, "eager steps must not compile"
    with pytest.warns(UserWarning, match="random numbers of its own"):
        assert asked(1, random=True)[0] is None
    with pytest.warns(UserWarning, match="recurrent"):
        assert asked(1, other={"lstm.weight": "used by lstm"})[0] is None
