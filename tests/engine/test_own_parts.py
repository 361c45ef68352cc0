"""A gradient, a stepper and a collector that Doxa does not know, through all that Doxa does with its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

import doxa
from doxa import kl_weights, likelihoods, rates
from doxa.contracts import Batch, Estimate, Moment, Problem
from doxa.engine import run as run_module
from doxa.engine.context import StepContext
from doxa.engine.contracts import DeclaresBest, Group, Parameter, State
from doxa.engine.recipes import GradientRows, materialised
from doxa.errors import BadInput
from doxa.posteriors.delta import Delta
from doxa.search.engines.contract import GradientWithEngine
from doxa.search.engines.in_process import evaluate_in_process
from test_capture import Record, record

__all__ = ["record"]  # a fixture


def even(moment: Moment) -> bool:
    return moment.step % 2 == 0


def odd(moment: Moment) -> bool:
    return moment.step % 2 == 1


@dataclass(eq=False)
class Halves:
    """Weights w = a + b, of which a moves at even steps and b at odd ones: nets that learn in turn."""

    problem: Problem
    eager: str | None = None

    def __post_init__(self) -> None:
        self.a, self.b = self.problem.start.clone(), torch.zeros_like(self.problem.start)
        self.parameters = [
            Parameter("a", self.a, group=Group("even", even)),
            Parameter("b", self.b, group=Group("odd", odd)),
        ]
        self.rows = torch.zeros_like(self.a)
        self.batches_seen = torch.zeros(len(self.a), 1)  # batches that were looked at, whoever rests

    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        losses = []
        for k in range(len(self.a)):
            w = (self.a[k] + self.b[k]).requires_grad_()
            output = functional_call(self.problem.net, self.problem.layout.weights(w), (batch.x[k],))
            loss = -self.problem.likelihood.log_prob(output, batch.y[k], {}).mean()
            self.rows[k] = torch.autograd.grad(loss, w)[0]
            losses.append(loss.detach())
        self.batches_seen += 1
        return torch.stack(losses)

    def slopes(self, context: StepContext, prior: bool = True) -> list[GradientRows]:
        whole = slice(0, self.a.shape[1])
        return [GradientRows(p.name, whole, True, self.rows.clone(), p.values) for p in self.parameters]

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Points:
        a, b = (self.a, self.b) if at is None else (at["a"], at["b"])
        return Points(a + b, {s.name: "halves" for s in self.problem.layout.slots})

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        return [{"seen": float(self.batches_seen[k])} for k in nets]

    def state(self) -> State:
        return State({"a": self.a, "b": self.b}, {"seen": self.batches_seen})


@dataclass(frozen=True, eq=False)
class Points:
    mean: Tensor
    noise: dict[str, str]

    def draw(self, stream: Any) -> Tensor:
        return self.mean.clone()

    def posterior(self, net: int) -> Delta:
        return Delta(self.mean[net].clone(), self.mean.shape[1])

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return ({},)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        return [Estimate(0.0) for _ in nets]


@dataclass(frozen=True)
class Signs:
    """Steps of the rate against the sign of the gradient; the number of a group's step is remembered as it is told."""

    def start(self, gradient: Halves) -> SignStepper:
        return SignStepper(gradient)


class SignStepper:
    eager = None

    def __init__(self, gradient: Halves) -> None:
        self.counts = {p.name: torch.zeros(len(p.values), 1) for p in gradient.parameters}

    def schedules(self) -> dict[str, Any]:
        return {"factor": [rates.constant(0.5)] * len(self.counts["a"])}

    def numbers(self, count: int) -> tuple[float, ...]:
        return (float(count),)

    @torch.no_grad()
    def step(self, gradient: Halves, context: StepContext) -> None:
        slopes = materialised(gradient, context)
        for group, p in enumerate(gradient.parameters):
            step = (context.rates[group] * context.numbers["factor"])[:, None] * slopes[p.name].sign()
            p.values.sub_(torch.where(context.active(group), step, 0))
            group_step = torch.as_tensor(context.scalars[group][0], dtype=torch.float32)
            self.counts[p.name].copy_(torch.where(context.active(group), group_step, self.counts[p.name]))

    def state(self) -> State:
        return State({f"counts.{name}": t for name, t in self.counts.items()})

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        for name, tensor in self.state().tensors.items():
            tensor.copy_(tensors[name])


@dataclass(frozen=True)
class Middle:
    """The middle between the first and the last state."""

    def start(self, gradient: Halves, setup: Any) -> MiddleCollector:
        return MiddleCollector(gradient)


class MiddleCollector:
    def __init__(self, gradient: Halves) -> None:
        self.gradient = gradient
        self.first = {p.name: p.values.clone() for p in gradient.parameters}

    def moments(self, span: range) -> Collection[int]:
        return [s for s in span if s == 0]

    def observe(self, context: StepContext) -> None:
        for p in self.gradient.parameters:
            self.first[p.name].copy_(p.values)

    def improved(self, nets: Sequence[int]) -> None:
        pass

    def finish(self, nets: Sequence[int], data: Callable[[], Iterator[Batch]]) -> None:
        assert sum(len(batch.y[0]) for batch in data()) == 20

    def beliefs(self) -> Points:
        return self.gradient.beliefs({p.name: (p.values + self.first[p.name]) / 2 for p in self.gradient.parameters})

    def state(self) -> State:
        return State(self.first)

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        for name, tensor in self.first.items():
            tensor.copy_(tensors[name])


@dataclass(frozen=True)
class CustomLearner:
    """A recipe of the three."""

    prior: None = None
    kl_weight: Any = field(default_factory=kl_weights.uniform)

    nets = 1
    kind = ("own",)

    def start(self, problem: Problem, fleet: Sequence[CustomLearner]) -> Halves:
        return Halves(problem)

    def optimiser(self, fleet: Sequence[CustomLearner]) -> Signs:
        return Signs()

    def collector(self, fleet: Sequence[CustomLearner]) -> Middle:
        return Middle()


@dataclass(frozen=True)
class Whole(Middle):
    """The same, believed as a whole."""

    has_best: ClassVar[bool] = False


@dataclass(eq=False)
class SharedHalves(Halves):
    """The same, that workers may evaluate for."""

    engine: Any = None
    exchange: Any = None


@dataclass(eq=False)
class CountingEngine:
    """An engine without workers: how often it was started, and for whom."""

    gradients: list[SharedHalves] = field(default_factory=list)
    started: int = 0
    parts: int = 1
    leads: bool = True

    @contextmanager
    def start_workers(self, copy: Callable[[], bytes]) -> Iterator[Any]:
        self.started += 1
        yield evaluate_in_process


@dataclass(frozen=True)
class SharedLearner(CustomLearner):
    """The same recipe with an engine."""

    engine: Any = field(default=None, compare=False)

    def start(self, problem: Problem, fleet: Sequence[CustomLearner]) -> SharedHalves:
        self.engine.gradients.append(SharedHalves(problem, engine=self.engine))
        return self.engine.gradients[-1]


def rows(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(20, 3, generator=generator)
    return x, (x @ torch.tensor([[1.0], [-2.0], [0.5]]))


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(3, 1, bias=False)


KEYS = {"likelihood": likelihoods.gaussian(1.0), "epochs": 4, "batch_size": 8, "lr": 0.1, "progress": False}
fit = partial(doxa.fit, learner=CustomLearner(), **KEYS)
SEEDS = [1, 2, 3]


def by_hand(seed: int) -> tuple[Tensor, list[float]]:
    """The same written out: the belief's mean, and the NLLs of the epochs."""
    belief = doxa.fit(net(), rows(), learner=doxa.learners.point(), seed=seed, **{**KEYS, "epochs": 1, "lr": 1e-30})
    from doxa.engine.feed import InMemoryFeed
    from doxa.engine.sources import ShuffledSource
    from doxa.random.keys import seed_of

    net_seeds = torch.tensor([seed_of((seed, "net", 0))])
    source = ShuffledSource(InMemoryFeed(*rows(), 8), net_seeds)
    a, b = belief.posterior.mean.clone(), torch.zeros(3)
    first, losses = None, []
    for step in range(12):
        source.begin(step)
        batch = source.batch(StepContext(None, None, (), position=step))
        w = (a + b).requires_grad_()
        loss = -likelihoods.gaussian(1.0).log_prob(batch.x[0] @ w[:, None], batch.y[0], {}).mean()
        (g,) = torch.autograd.grad(loss, w)
        (a if step % 2 == 0 else b).sub_(0.05 * g.sign())
        losses.append(float(loss.detach()))
        if step == 0:
            first = a + b
    return (first + a + b) / 2, [sum(losses[3 * e : 3 * e + 3]) / 3 for e in range(4)]


def test_it_learns_through_fit_what_it_learns_by_hand() -> None:
    belief = fit(net(), rows(), seed=1)
    mean, losses = by_hand(1)
    torch.testing.assert_close(belief.posterior.mean, mean)
    assert [row["nll"] for row in belief.record.history] == pytest.approx(losses, rel=1e-5)
    assert [row["seen"] for row in belief.record.history] == [3, 6, 9, 12]
    assert belief.record.history[-1]["factor"] == 0.5
    assert belief.record.settings["optimiser"] == {"is": "Signs"}
    assert belief.noise == {"weight": "halves"}


def test_a_fleet_and_an_ensemble_have_it_as_alone() -> None:
    alone = [fit(net(), rows(), seed=s).posterior.mean for s in SEEDS]
    beliefs = doxa.fleet(net(), rows(), learners=CustomLearner(), seeds=SEEDS, **KEYS)
    for belief, mean in zip(beliefs, alone, strict=True):
        torch.testing.assert_close(belief.posterior.mean, mean)
    ensemble = doxa.fit(
        net(), rows(), learner=doxa.learners.ensemble(CustomLearner(), 2, restart=False), seed=1, **KEYS
    )
    assert ensemble.posterior.weights.shape == (2, 3)
    torch.testing.assert_close(ensemble.posterior.weights[0], alone[0])
    assert not torch.equal(ensemble.posterior.weights[1], ensemble.posterior.weights[0]), "an order of its own"


def test_patience_asks_a_collector_whether_one_epoch_can_be_the_best() -> None:
    keys = {**KEYS, "validation": rows(1), "patience": 1}
    assert not isinstance(Middle(), DeclaresBest), "one that does not say can go back"
    assert len(doxa.fit(net(), rows(), learner=CustomLearner(), **keys).record.history) <= 4
    with pytest.raises(BadInput, match="believes in all that it kept: leave patience out"):
        doxa.fit(net(), rows(), learner=Averaged(collector_settings=Whole()), **keys)
    says = {name for name, collector in doxa.collectors.TABLE.items() if isinstance(collector(), DeclaresBest)}
    assert says == {"samples"}
    assert not doxa.collectors.samples().has_best


def test_workers_are_started_for_a_gradient_with_an_engine_alone() -> None:
    engine = CountingEngine()
    shared = doxa.fit(net(), rows(), learner=SharedLearner(engine=engine), seed=1, **KEYS)
    (gradient,) = engine.gradients
    assert isinstance(gradient, GradientWithEngine)
    assert (engine.started, gradient.exchange) == (1, evaluate_in_process)
    assert not isinstance(Halves(gradient.problem), GradientWithEngine), "it learns without workers, and the same"
    assert torch.equal(shared.posterior.mean, fit(net(), rows(), seed=1).posterior.mean)


def test_groups_count_their_own_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steppers: list[SignStepper] = []
    start = Signs.start
    monkeypatch.setattr(Signs, "start", lambda self, gradient: steppers.append(start(self, gradient)) or steppers[-1])
    fit(net(), rows(), epochs=3)  # nine steps
    assert float(steppers[0].counts["a"]) == 5
    assert float(steppers[0].counts["b"]) == 4


def test_it_is_recorded_as_it_is_written(record: Record) -> None:
    """On stand-ins for a GPU's graphs; what moves while nobody steps is put back after warming up."""
    written = doxa.fleet(net(), rows(), learners=CustomLearner(), seeds=SEEDS, **KEYS)
    warmed = record()
    for recorded, written_belief in zip(
        doxa.fleet(net(), rows(), learners=CustomLearner(), seeds=SEEDS, **KEYS), written, strict=True
    ):
        torch.testing.assert_close(recorded.posterior.mean, written_belief.posterior.mean)
        assert [r["seen"] for r in recorded.record.history] == [r["seen"] for r in written_belief.record.history]
    assert warmed == [8, 8, 4, 4]


@pytest.mark.parametrize("recording", [False, True])
def test_it_resumes_to_the_byte(
    recording: bool, record: Record, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if recording:
        record()
    fit(net(), rows(), checkpoint=tmp_path / "whole")

    class Enough(Exception):
        pass

    def watch(belief: doxa.Belief) -> dict[str, float]:
        if len(belief.record.history) == 3:
            raise Enough
        return {}

    with pytest.raises(Enough):
        fit(net(), rows(), checkpoint=tmp_path / "cut", checkpoint_steps=4, watch=watch)
    fit(net(), rows(), checkpoint=tmp_path / "cut", resume=True)
    for file in ("belief.doxa", "checkpoint.doxa"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


def test_an_average_counts_every_group_s_steps() -> None:
    """A net is awake where any group of its parameters is."""
    averaged = {
        name: doxa.fit(net(), rows(), learner=Averaged(collector_settings=settings), **KEYS).posterior.mean
        for name, settings in (("mean", doxa.collectors.average(0.0, 1)), ("last", doxa.collectors.last()))
    }
    means: list[Tensor] = []

    def watch(belief: doxa.Belief) -> dict[str, float]:
        means.append(belief.posterior.mean.clone())
        return {}

    doxa.fit(
        net(),
        rows(),
        learner=Averaged(collector_settings=doxa.collectors.last()),
        **{**KEYS, "batch_size": 20},
        watch=watch,
    )
    of_epochs = doxa.fit(
        net(),
        rows(),
        learner=Averaged(collector_settings=doxa.collectors.average(0.0, 1)),
        **{**KEYS, "batch_size": 20},
    ).posterior.mean
    torch.testing.assert_close(of_epochs, torch.stack(means).mean(0))
    assert not torch.equal(averaged["mean"], averaged["last"])


@dataclass(frozen=True)
class Averaged(CustomLearner):
    """The same with a collector of Doxa's."""

    collector_settings: Any = None

    def collector(self, fleet: Sequence[CustomLearner]) -> Any:
        return self.collector_settings


@dataclass(frozen=True)
class Both:
    """A recipe of two parameters at once."""

    gradient: Halves
    random: bool = True
    parameters = ("a", "b")

    @property
    def span(self) -> slice:
        return slice(0, self.gradient.a.shape[1])

    def fill(self, into: Mapping[str, Tensor]) -> None:
        for name in self.parameters:
            into[name][:, self.span] = self.gradient.rows


@pytest.mark.parametrize("optimiser", [doxa.optimisers.adam(), doxa.optimisers.sgd(0.5), torch.optim.Adam])
def test_steppers_take_recipes_of_several_parameters(optimiser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CustomLearner, "optimiser", lambda self, fleet: None)
    apart = fit(net(), rows(), optimiser=optimiser).posterior.mean
    monkeypatch.setattr(Halves, "slopes", lambda self, context, prior=True: [Both(self)])
    assert torch.equal(fit(net(), rows(), optimiser=optimiser).posterior.mean, apart)


def test_what_cannot_be_recorded_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CustomLearner, "start", lambda self, problem, fleet: Halves(problem, "halves like to be seen"))
    reasons: list[str | None] = []
    monkeypatch.setattr(run_module, "make_recording", lambda run, steps: reasons.append(reason_not_recordable(run)))
    fit(net(), rows(), epochs=1)
    assert reasons == ["halves like to be seen"]


def reason_not_recordable(run: Any) -> str | None:
    from doxa.engine.capture import why_not_recordable

    return why_not_recordable(run)


def test_parts_refuse_partners_they_cannot_serve() -> None:
    variational = doxa.learners.variational(doxa.priors.gaussian(1.0))
    with pytest.raises(BadInput, match="Langevin noise makes samples of weights, and 'rho' holds scales"):
        doxa.fit(net(), rows(), learner=variational, optimiser=doxa.optimisers.langevin(), **KEYS)
    with pytest.raises(BadInput, match="an average is one of weights, and 'rho' holds scales"):
        doxa.fit(net(), rows(), learner=doxa.learners.swa(variational), **KEYS)
    with pytest.raises(BadInput, match="takes steps of its own, Signs's: leave optimiser= out"):
        doxa.fit(net(), rows(), learner=CustomLearner(), optimiser=doxa.optimisers.adam(), **KEYS)
