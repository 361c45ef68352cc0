"""Recorded steps of a game without a GPU, on stand-ins for its streams and graphs; and on one, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from doxa import capture, native
from doxa.judge import bandits
from doxa.judge.bandits import game as module
from doxa.judge.bandits.game import Game
from judge.bandits.small import PAIRS, RULES, bandit, net, numbers, played
from judge.bandits.test_play import three
from test_capture import Graph, Stream


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """From its call on, steps of games are recorded and replayed; it returns a list of those that warm up."""
    monkeypatch.setattr(native, "library", lambda: None)
    written = Game._turn_in_memory
    under_way: list[Graph] = []
    warmed: list[int] = []

    def step(game: Game) -> None:
        if under_way:
            under_way[-1].noted = partial(written, game)
            return
        warmed.append(int(game.clock))
        written(game)

    @contextmanager
    def recording(graph: Graph, pool: None, stream: Stream) -> Iterator[None]:
        under_way.append(graph)
        yield
        under_way.pop()

    def begin() -> list[int]:
        stand_ins = {"Stream": Stream, "current_stream": Stream, "CUDAGraph": Graph, "graph": recording}
        for name, stand_in in {**stand_ins, "stream": lambda stream: nullcontext()}.items():
            monkeypatch.setattr(torch.cuda, name, stand_in)
        monkeypatch.setattr(Game, "_turn_in_memory", step)
        monkeypatch.setattr(Game, "_fast", lambda game: game._recorded(False))
        return warmed

    return begin


@pytest.mark.parametrize(("learner", "policy"), PAIRS)
def test_a_recorded_game_is_the_written_one(
    learner: str, policy: str, record: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over several spans of the tables in memory."""
    monkeypatch.setattr(module, "SPAN", 5)
    agents = three(learner, policy)
    written = played(agents)
    warmed = record()
    for one, other in zip(played(agents), written, strict=True):
        assert torch.equal(one.taken, other.taken)
        for found, right in zip(numbers(one), numbers(other), strict=True):
            torch.testing.assert_close(found, right, rtol=1e-9, atol=1e-11)
    assert warmed == [0] * capture.WARM


@pytest.mark.parametrize(("learner", "policy"), [("shared", "thompson, two"), ("point", "curious")])
def test_a_recorded_game_resumes_to_the_byte(
    learner: str, policy: str, record: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Saved in the middle of it by the clock, as long games are; warming up again leaves no trace."""
    record()
    agents = three(learner, policy)
    played(agents, checkpoint=tmp_path / "whole")
    monkeypatch.setattr(module, "SPAN", 4)
    save = Game.save

    class Enough(Exception):
        pass

    def once(game: Game) -> None:
        save(game)
        if game.done == 8:
            raise Enough

    monkeypatch.setattr(Game, "save", once)
    with pytest.raises(Enough):
        played(agents, checkpoint=tmp_path / "cut", checkpoint_every=8)
    monkeypatch.setattr(Game, "save", save)
    played(agents, checkpoint=tmp_path / "cut", resume=True)
    files = [(tmp_path / name / "checkpoint.doxa").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


def on_the_device(agents: Any, **more: Any) -> list[bandits.Outcome]:
    nets = [net(agent.seed).float() for agent in agents]
    return bandits.play(nets, bandit(), agents, device="cuda", **{**RULES, "memory": 64, "steps": 40, **more})


@needs_gpu
@pytest.mark.parametrize(("learner", "policy"), PAIRS)
def test_captured_is_eager_to_the_bit_on_the_device(learner: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = three(learner, policy)
    captured = on_the_device(agents)
    monkeypatch.setattr(Game, "_fast", lambda game: None)
    for one, other in zip(captured, on_the_device(agents), strict=True):
        assert torch.equal(one.taken, other.taken)
        assert all(torch.equal(a, b) for a, b in zip(numbers(one), numbers(other), strict=True))


@needs_gpu
def test_a_game_resumes_to_the_byte_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = three("shared", "thompson, two")
    on_the_device(agents, checkpoint=tmp_path / "whole")
    monkeypatch.setattr(module, "SPAN", 10)
    turn, left = Game._begin, [3]

    class Enough(Exception):
        pass

    def counting(game: Game) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise Enough
        return turn(game)

    monkeypatch.setattr(Game, "_begin", counting)
    with pytest.raises(Enough):
        on_the_device(agents, checkpoint=tmp_path / "cut", checkpoint_every=10)
    monkeypatch.setattr(Game, "_begin", turn)
    on_the_device(agents, checkpoint=tmp_path / "cut", resume=True)
    files = [(tmp_path / name / "checkpoint.doxa").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]
