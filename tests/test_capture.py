"""Recorded steps without a GPU, on stand-ins for its streams and graphs, and what happens to those that cannot be.

tests/test_cuda.py has the recording itself.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import cycle, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import doxa
from doxa import kernels as native
from doxa import learners, likelihoods, noise, optimisers, posteriors, priors, rates
from doxa.engine import capture
from doxa.engine import run as run_module
from doxa.errors import Interrupted
from doxa.gradients.forward_backward import why_eager
from doxa.weights.probe import Uses
from examples import MAKERS, with_kl_weight
from laws.test_fleets import WEIGHTS, net, numbers, rows


def request_recording(monkeypatch: pytest.MonkeyPatch, steps: int, why: str | None = None) -> Any:
    """What is made of a run on a GPU, whose gradient may have a reason against it."""
    part = SimpleNamespace(eager=None)
    run: Any = SimpleNamespace(
        device=SimpleNamespace(type="cuda"), source=part, stepper=part, gradient=SimpleNamespace(eager=why)
    )
    return capture.make_recording(run, steps)


def recorder(monkeypatch: pytest.MonkeyPatch, fails: tuple[bool, ...]) -> list[bool]:
    """Recordings that fail for these; a note of each attempt, compiled or not."""
    attempts: list[bool] = []

    def made(run: Any, compiled: bool) -> str:
        attempts.append(compiled)
        if compiled in fails:
            raise RuntimeError("no\nmore of it")
        return "compiled" if compiled else "recording"

    monkeypatch.setattr(capture, "Recording", made)
    return attempts


def test_nets_are_compiled_only_where_it_repays(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = recorder(monkeypatch, fails=())
    assert request_recording(monkeypatch, capture.COMPILE_FROM_STEPS) == "compiled"
    assert request_recording(monkeypatch, capture.COMPILE_FROM_STEPS - 1) == "recording"
    assert attempts == [True, False]


def test_a_net_that_does_not_compile_is_recorded_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = recorder(monkeypatch, fails=(True,))
    assert request_recording(monkeypatch, capture.COMPILE_FROM_STEPS) == "recording"
    assert attempts == [True, False]


def test_what_cannot_be_recorded_runs_as_written_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = recorder(monkeypatch, fails=(True, False))
    with pytest.warns(UserWarning, match=r"cannot be recorded \(no\)"):
        assert request_recording(monkeypatch, capture.COMPILE_FROM_STEPS) is None
    assert attempts == [True, False]
    for uses, reason in ((Uses({}, {}, draws_random_numbers=True), "random numbers of its own"), (LSTM, "recurrent")):
        problem: Any = SimpleNamespace(uses=uses)
        with pytest.warns(UserWarning, match=reason):
            assert request_recording(monkeypatch, 1, why_eager(problem)) is None
    assert why_eager(SimpleNamespace(uses=Uses({}, {}))) is None
    assert attempts == [True, False], "what says why is not tried"


LSTM = Uses({}, {"lstm.weight": "used by lstm"})


class Stream:
    """A stand-in: one after the other is the only order there is."""

    def __init__(self, device: Any = None) -> None:
        pass

    def wait_stream(self, other: Stream) -> None:
        pass


class Graph:
    """A stand-in that notes the step instead of running it, as a recording does, and runs it when it is replayed."""

    noted: Callable[[], None]

    def pool(self) -> None:
        pass

    def replay(self) -> None:
        self.noted()


def record_run(run: Any, steps: int) -> capture.Recording:
    return capture.Recording(run)


Record = Callable[[], list[int]]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    """From its call on, steps are recorded and replayed; it returns the lengths of those that will run to warm up.

    Before and after, torch does what C kernels would, which a recorded step never asks.
    """
    monkeypatch.setattr(native, "library", lambda: None)
    written = capture.Recording._run_unit
    under_way: list[Graph] = []
    warmed: list[int] = []

    def unit(recording: capture.Recording, form: Any) -> None:
        if under_way:
            under_way[-1].noted = partial(written, recording, form)
            return
        warmed.append(form)
        written(recording, form)

    @contextmanager
    def recording(graph: Graph, pool: None, stream: Stream) -> Iterator[None]:
        under_way.append(graph)
        yield
        under_way.pop()

    def begin() -> list[int]:
        stand_ins = {"Stream": Stream, "current_stream": Stream, "CUDAGraph": Graph, "graph": recording}
        for name, stand_in in {**stand_ins, "stream": lambda stream: nullcontext()}.items():
            monkeypatch.setattr(torch.cuda, name, stand_in)
        monkeypatch.setattr(capture.Recording, "_run_unit", unit)
        monkeypatch.setattr(run_module, "make_recording", record_run)
        return warmed

    return begin


# Of scales so far apart that members stop at different epochs.
PRIORS = {
    "gaussian": [priors.gaussian(s) for s in (0.1, 1.0, 3.0)],
    "laplace": [priors.laplace(s) for s in (0.1, 1.0, 3.0)],
    "scale_mixture": [priors.scale_mixture(s, 1.0, 0.01) for s in (0.25, 0.5, 0.75)],
    "student_t": [priors.student_t(3.0, s) for s in (0.1, 1.0, 3.0)],
}


def three_learners(make: Callable[..., Any], prior: str) -> list[Any]:
    """Members with priors and schedules of the KL's weight of their own."""
    return [with_kl_weight(make(p), w) for p, w in zip(PRIORS[prior], WEIGHTS, strict=True)]


FLEETS = {
    "local": three_learners(MAKERS["variational-local"], "gaussian"),
    "shared": three_learners(MAKERS["variational-shared"], "scale_mixture"),
    "flipout": three_learners(lambda p: learners.variational(p, noise.flipout, 2), "gaussian"),
    "per layer": three_learners(
        lambda p: learners.variational(p, posterior=posteriors.mean_field("layer")), "gaussian"
    ),
    "laplace": three_learners(MAKERS["variational-shared"], "laplace"),
    "student_t": three_learners(MAKERS["variational-local"], "student_t"),
    "point": three_learners(MAKERS["point-map"], "gaussian"),
    "dropout": three_learners(MAKERS["dropout-map"], "gaussian"),
    "ensemble": [
        learners.ensemble(learners.variational(p, kl_weight=w), 2)
        for p, w in zip(PRIORS["gaussian"], WEIGHTS, strict=True)
    ],
}
OPTIMISERS = {"adam": optimisers.adam(), "sgd": optimisers.sgd(0.9)}


def train_fleet(name: str, optimiser: str, count: int = 60, **more: Any) -> list[doxa.Belief]:
    """A fleet whose members have rates of their own, and stop by themselves; one has labels that it cannot learn."""
    x, y = rows()
    x = x.double()
    held = [(x[:20], y[:20]), (x[20:40], 1 - y[20:40]), (x[40:], y[40:])]
    keys = {"epochs": 4, "patience": 1, "batch_size": 16, "validation_samples": 2, "progress": False, **more}
    return doxa.fleet(
        net().double(),
        (x[:count], y[:count]),
        learners=FLEETS[name],
        likelihood=likelihoods.categorical(),
        optimiser=OPTIMISERS[optimiser],
        seeds=[1, 2, 3],
        lr=[0.05, 0.03, rates.cosine(0.05)],
        validation=held,
        **keys,
    )


# Batches of 16: of 60 rows the last is shorter, of 49 it has taken in the one row left over.
WAYS = list(product(OPTIMISERS, (60, 49)))
BOTH = [(name, *way) for i, name in enumerate(FLEETS) for way in ((WAYS[0], WAYS[3]), (WAYS[1], WAYS[2]))[i % 2]]
ONE = [(name, *way) for name, way in zip(FLEETS, cycle(WAYS), strict=False)]


@pytest.mark.parametrize(("name", "optimiser", "count"), BOTH)
def test_a_recorded_fleet_is_the_written_one(name: str, optimiser: str, count: int, record: Record) -> None:
    written = train_fleet(name, optimiser, count)
    record()
    lengths = set()
    for recorded_belief, written_belief in zip(train_fleet(name, optimiser, count), written, strict=True):
        for value, expected in zip(numbers(recorded_belief), numbers(written_belief), strict=True):
            torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-9)
        for row, expected in zip(recorded_belief.record.history, written_belief.record.history, strict=True):
            assert row == pytest.approx(expected, rel=1e-9)
        assert recorded_belief.record.settings == written_belief.record.settings
        lengths.add(len(recorded_belief.record.history))
    assert len(lengths) > 1, "they stop at different epochs"


@pytest.mark.parametrize(("name", "optimiser", "count"), ONE)
def test_a_recorded_fleet_resumes_to_the_byte(
    name: str, optimiser: str, count: int, record: Record, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From a step into its third epoch, when a member has come to rest."""
    record()
    whole = train_fleet(name, optimiser, count, epochs=3, checkpoint=tmp_path / "whole")
    assert 2 in {len(belief.record.history) for belief in whole}
    replay, left = Graph.replay, [{60: 9, 49: 7}[count]]

    def interrupting(graph: Graph) -> None:
        replay(graph)
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Graph, "replay", interrupting)
    with pytest.raises(Interrupted):
        train_fleet(name, optimiser, count, epochs=3, checkpoint=tmp_path / "cut")
    train_fleet(name, optimiser, count, epochs=3, checkpoint=tmp_path / "cut", resume=True)
    files = sorted(p.name for p in (tmp_path / "whole").iterdir())
    assert files == [*(f"belief-{k}.doxa" for k in range(3)), "checkpoint-previous.doxa", "checkpoint.doxa"]
    files.remove("checkpoint-previous.doxa")  # in one of them it is where it was interrupted
    for file in files:
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


def state_of(run: Any) -> list[Tensor]:
    """All that a checkpoint would hold of gradient and stepper."""
    return [t.clone() for part in (run.gradient, run.stepper) for t in part.state().tensors.values()]


def refuse_recording(*_: Any, **__: Any) -> None:
    raise RuntimeError("this cannot be recorded")


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize(("name", "optimiser"), [("local", "adam"), ("flipout", "sgd"), ("dropout", "sgd")])
def test_warming_up_leaves_everything_as_it_was(
    name: str, optimiser: str, refuses: bool, record: Record, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a training under way, its optimiser, BatchNorm's statistics and the counters; also if no recording comes."""
    warmed = record()
    train_fleet(name, optimiser, epochs=1, checkpoint=tmp_path)
    warmed.clear()

    def watched(run: Any, steps: int) -> capture.Recording | None:
        before, recording = state_of(run), None
        if refuses:
            monkeypatch.setattr(torch.cuda, "graph", refuse_recording)
            with pytest.raises(RuntimeError, match="cannot be recorded"):
                record_run(run, steps)
        else:
            recording = record_run(run, steps)
            assert not any(
                bool(t.any()) for t in (recording.table.step, recording.table.position, run.monitor.loss_sums)
            )
        assert all(bool(t.any()) for t in before), "of a training under way"
        assert all(torch.equal(old, new) for old, new in zip(before, state_of(run), strict=True))
        return recording

    monkeypatch.setattr(run_module, "make_recording", watched)
    train_fleet(name, optimiser, epochs=2, checkpoint=tmp_path, resume=True)
    assert warmed == [16] * capture.WARM_UP_UNITS + ([] if refuses else [12] * capture.WARM_UP_UNITS)
