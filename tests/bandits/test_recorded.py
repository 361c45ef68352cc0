"""Recorded steps of a game without a GPU, on stand-ins for its streams and graphs; and on one, where there is one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from bandits.small import PAIRS, RULES, bandit, net, numbers, play_small
from bandits.test_play import three_agents
from doxa import bandits, kl_weights, learners, priors
from doxa.engine import capture
from doxa.engine import run as run_module
from doxa.engine.checkpoint import Checkpointer
from doxa.engine.run import Run
from test_capture import Record, record

__all__ = ["record"]  # a fixture


@pytest.mark.parametrize(("learner", "policy"), PAIRS)
def test_a_recorded_game_is_the_written_one(
    learner: str, policy: str, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over several spans of the tables in memory."""
    monkeypatch.setattr(sys.modules["doxa.bandits.play"], "SPAN", 5)
    agents = three_agents(learner, policy)
    written = play_small(agents)
    warmed = record()
    for one, other in zip(play_small(agents), written, strict=True):
        assert torch.equal(one.taken, other.taken)
        for recorded_numbers, expected in zip(numbers(one), numbers(other), strict=True):
            torch.testing.assert_close(recorded_numbers, expected, rtol=1e-9, atol=1e-11)
    assert warmed == [None] * capture.WARM_UP_UNITS


def test_a_recorded_pass_over_the_memory_is_the_written_one(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """With shares of the KL that halve from update to update."""
    monkeypatch.setattr(sys.modules["doxa.bandits.play"], "SPAN", 5)
    learner = learners.variational(priors.scale_mixture(0.5, 1.0, 0.1), samples=2, kl_weight=kl_weights.geometric())
    agents = [bandits.agent(learner, bandits.thompson(2, per_action=True), seed, 0.02) for seed in (1, 2)]
    options: dict[str, Any] = {"memory": 16, "batch_size": 4, "updates": 4, "replacement": False}
    written = play_small(agents, **options)
    record()
    for one, other in zip(play_small(agents, **options), written, strict=True):
        assert torch.equal(one.taken, other.taken)
        for recorded_numbers, expected in zip(numbers(one), numbers(other), strict=True):
            torch.testing.assert_close(recorded_numbers, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("learner", "policy"), [("shared", "thompson, two"), ("point", "curious")])
def test_a_recorded_game_resumes_to_the_byte(
    learner: str, policy: str, record: Record, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Saved in the middle of it by the clock, as long games are; warming up again leaves no trace."""
    record()
    agents = three_agents(learner, policy)
    play_small(agents, checkpoint=tmp_path / "whole")
    monkeypatch.setattr(sys.modules["doxa.bandits.play"], "SPAN", 4)
    save = Checkpointer.save

    class Enough(Exception):
        pass

    def once(file: Checkpointer, work: Any) -> None:
        save(file, work)
        if work.done == 8:
            raise Enough

    monkeypatch.setattr(Checkpointer, "save", once)
    with pytest.raises(Enough):
        play_small(agents, checkpoint=tmp_path / "cut", checkpoint_every=8)
    monkeypatch.setattr(Checkpointer, "save", save)
    play_small(agents, checkpoint=tmp_path / "cut", resume=True)
    files = [(tmp_path / name / "checkpoint.doxa").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]


def test_a_recorded_game_goes_on_with_one_step_left(record: Record, tmp_path: Path) -> None:
    """Warming up does not run past its end."""
    record()
    agents = three_agents("point", "greedy")
    uninterrupted = play_small(agents, checkpoint=tmp_path / "whole")
    save = Checkpointer.save

    class Enough(Exception):
        pass

    def once(file: Checkpointer, work: Any) -> None:
        save(file, work)
        if work.done == 11:
            raise Enough

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpointer, "save", once)
        with pytest.raises(Enough):
            play_small(agents, checkpoint=tmp_path / "cut", checkpoint_every=11)
    resumed = play_small(agents, checkpoint=tmp_path / "cut", resume=True)
    assert all(torch.equal(one.taken, other.taken) for one, other in zip(resumed, uninterrupted, strict=True))
    assert len(play_small(agents, steps=1)) == 3


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


def on_the_device(agents: Any, **options: Any) -> list[bandits.Outcome]:
    nets = [net(agent.seed).float() for agent in agents]
    return bandits.play(nets, bandit(), agents, device="cuda", **{**RULES, "memory": 64, "steps": 40, **options})


@needs_gpu
@pytest.mark.parametrize(("learner", "policy"), PAIRS)
def test_captured_is_eager_to_the_bit_on_the_device(learner: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = three_agents(learner, policy)
    captured = on_the_device(agents)
    monkeypatch.setattr(run_module, "make_recording", lambda run, steps: None)
    for one, other in zip(captured, on_the_device(agents), strict=True):
        assert torch.equal(one.taken, other.taken)
        assert all(torch.equal(a, b) for a, b in zip(numbers(one), numbers(other), strict=True))


@needs_gpu
def test_a_game_resumes_to_the_byte_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = three_agents("shared", "thompson, two")
    on_the_device(agents, checkpoint=tmp_path / "whole")
    monkeypatch.setattr(sys.modules["doxa.bandits.play"], "SPAN", 10)
    prepare_span, left = Run._prepare_span, [3]

    class Enough(Exception):
        pass

    def counting(run: Run, unit: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Enough
        prepare_span(run, unit)

    monkeypatch.setattr(Run, "_prepare_span", counting)
    with pytest.raises(Enough):
        on_the_device(agents, checkpoint=tmp_path / "cut", checkpoint_every=10)
    monkeypatch.setattr(Run, "_prepare_span", prepare_span)
    on_the_device(agents, checkpoint=tmp_path / "cut", resume=True)
    files = [(tmp_path / name / "checkpoint.doxa").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]
