"""Variational optimisation of nets, as a learner for `doxa.fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from doxa.batch_norm import has_batch_norm
from doxa.contracts import Batch, Estimate, Inputs, Now, Posterior, Prior, Problem, Schedule, Training
from doxa.errors import BadInput, require_from_zero, require_positive, whole
from doxa.flat import Moments, Pace, adam
from doxa.kl_weights import uniform
from doxa.layout import call, not_finite
from doxa.philox import Stream, fill_normals
from doxa.posteriors import MeanField
from doxa.posteriors.mean_field import inverse_softplus
from doxa.randomness import reseed
from doxa.rows import rows_of
from doxa.search import gradients, sensitivity
from doxa.search.coordinates import Coordinate, coordinate_of, log_scale
from doxa.search.engines.contract import Engine, Evaluate, Exchange, Placed
from doxa.search.engines.in_process import InProcess, engine_of, evaluated
from doxa.search.gaussian import Gaussian, Slopes, groups_of
from doxa.search.gradients import Gradient, gradient_of
from doxa.search.local import Local
from doxa.search.objectives import Measure, Objective, require_measure
from doxa.search.population import population
from doxa.search.scene import Rows, Scene, settled_norms
from doxa.search.shaping import raw, shaping_of


class AtWork(Protocol):
    """An estimator with a net in hand."""

    noise: dict[str, str]

    def estimate(
        self, at: Gaussian, generation: int, rows: Rows, exchange: Exchange = evaluated
    ) -> tuple[Slopes, Tensor, Tensor]:
        """The slopes of the expected objective, and the value and the NLL of each perturbation that arrived."""
        ...


class Estimator(Protocol):
    """How perturbations meet the net; one of local, weight_space, low_rank."""

    @property
    def name(self) -> str: ...

    @property
    def antithetic(self) -> bool: ...

    def start(self, scene: Scene) -> AtWork: ...


@dataclass(frozen=True)
class VariationalOptimisation:
    """A Gaussian over the weights, moved to where the net does well on average, from values of the objective alone.

    min_θ U(θ) = E_p(w|θ) f(w),   ∇U = E_p(w|θ) f(w) ∇log p(w|θ)

    `minimise` or `maximise` is any measure of outputs and targets, a number a row or one for all; without one it is the
    likelihood's −log p(y | output). N is `size` perturbations a step, around scales that start at `scale`, one `per`
    weight, layer or network; `scale_rate` times the learning rate is that of the scales, and at 0 they stay as they
    are. `decay` draws the mean towards zero: by lr · decay a step of Adam's, as a term of the gradient with others.
    With a `sensitivity`, "sum" or "abs", weights that move the outputs much are perturbed little. `engine`, one of
    doxa.search.engines, says who evaluates. What was searched becomes the belief.
    Staines & Barber (2013), Optimization by variational bounding; Wierstra et al. (2014), Natural evolution strategies.
    """

    estimator: Estimator = field(default_factory=Local)
    minimise: Measure | None = None
    maximise: Measure | None = None
    size: int = 100
    scale: float = 0.05
    per: str = "network"
    scale_rate: float = 0.0
    gradient: Gradient = gradients.plain
    coordinate: Coordinate = log_scale
    decay: float = 0.0
    sensitivity: str | None = None
    engine: Engine = field(default_factory=InProcess)

    nets = 1
    prior: ClassVar[Prior | None] = None  # what is searched for is a best place, not a posterior
    kl_weight: ClassVar[Schedule] = uniform()

    def __post_init__(self) -> None:
        whole("size", self.size, least=2)
        require_positive("scale", self.scale)
        if self.minimise is not None and self.maximise is not None:
            raise BadInput("give minimise or maximise, not both")
        if self.per not in ("weight", "layer", "network"):
            raise BadInput(f'per must be "weight", "layer" or "network"; got {self.per!r}')
        require_measure("minimise", self.minimise)
        require_measure("maximise", self.maximise)
        require_from_zero("scale_rate", self.scale_rate)
        require_from_zero("decay", self.decay)
        gradient_of(self.gradient)
        coordinate_of(self.coordinate)
        if not hasattr(self.estimator, "start"):
            raise BadInput(f"estimator must be one of doxa.search, e.g. doxa.search.local(); got {self.estimator!r}")
        shaping_of(getattr(self.estimator, "shaping", raw))
        engine_of(self.engine)
        if self.sensitivity is not None and self.sensitivity not in sensitivity.TABLE:
            raise BadInput(f'sensitivity must be "sum" or "abs", or None; got {self.sensitivity!r}')
        if self.estimator.name == "low_rank" and (self.per == "weight" or self.scale_rate or self.sensitivity):
            raise BadInput("low-rank perturbations leave scales as they are, one per layer or network")

    @property
    def objective(self) -> Objective:
        return Objective(self.minimise) if self.maximise is None else Objective(self.maximise, -1.0)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program."""
        return VariationalOptimisation, self.per, self.coordinate.name, self.engine

    def start(self, problem: Problem, fleet: Sequence[VariationalOptimisation]) -> Training:
        return SearchTraining(fleet, problem)


@dataclass(frozen=True)
class Seen:
    """What one net's generation came to: where it looked, the slopes there, its buffers, its NLL, words for records."""

    at: Gaussian
    slopes: Slopes
    buffers: dict[str, Tensor]
    loss: Tensor
    told: dict[str, float]


class SearchTraining:
    """Search distributions at work: rows of means and of coordinates of scales, moved by estimated slopes."""

    passes = None  # steps are not recorded: what is compared must first be known

    def __init__(self, fleet: Sequence[VariationalOptimisation], problem: Problem) -> None:
        self.fleet, self.problem = fleet, problem.light()
        self.nets = self.members = len(fleet)
        own = fleet[0]
        self.groups = groups_of(own.per, problem.layout)
        self.coordinate = own.coordinate
        self.mean = problem.start.clone().requires_grad_()
        count = problem.layout.size if self.groups is None else len(self.groups)
        starts = torch.stack([problem.start.new_full((count,), one.scale) for one in fleet])
        self.scales = self.coordinate.of(starts)
        # What an optimiser adds to the scales at a step: zero before it, so that weight decay has nothing to draw on.
        self.scale_step = torch.zeros_like(self.scales).requires_grad_()
        self.parameters: Sequence[Tensor] = [self.mean, self.scale_step]
        self.populations = [
            population(one.size, one.estimator.antithetic, (*key, "search"), problem.start.device)
            for one, key in zip(fleet, problem.seeds, strict=True)
        ]
        self.at_work: list[AtWork | None] = [None] * self.nets
        self.slopes: list[Slopes] = []
        self.relative = (
            torch.ones_like(self.mean) if any(one.sensitivity for one in fleet) else self.mean[:, :0].detach()
        )
        self.norms = has_batch_norm(problem.net)
        self._buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.noise = {s.name: "search" if s.random else "search, point" for s in problem.layout.slots}
        self.seen: list[dict[str, float]] = [{} for _ in fleet]
        self.passed: list[Seen] = []  # of the step under way: a copy made in it goes on with the next net
        self.exchange: Exchange = evaluated

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a worker, which has another exchange and finds estimators anew."""
        return {**self.__dict__, "exchange": None, "at_work": [None] * self.nets, "slopes": []}

    def at(self, net: int) -> Gaussian:
        """Where one net's search looks now."""
        relative = self.relative[net] if self.fleet[net].sensitivity else None
        scale = self.coordinate.scale(self.scales[net] + self.scale_step.detach()[net])
        return Gaussian(self.mean.detach()[net], scale, self.groups, relative)

    @torch.no_grad()
    def step(self, batch: Batch, now: Now) -> Tensor:
        self._settle_scales()
        try:
            while len(self.passed) < self.nets:
                self.passed.append(self._generation(len(self.passed), batch, now))
            seen = self.passed
        finally:
            self.passed = []
        # All or nothing: a net whose evaluation failed has left the others where they were.
        for k, one in enumerate(seen):
            for name, b in one.buffers.items():
                self._buffers[name][k] = b
            if one.at.relative is not None:
                self.relative[k] = one.at.relative
            self.seen[k] = one.told
        self.slopes = [one.slopes for one in seen]
        return torch.stack([one.loss for one in seen])

    @torch.no_grad()
    def _settle_scales(self) -> None:
        """Whoever took the last step, an optimiser of torch's or this one, scales go on from within their bounds."""
        self.scales.copy_(self.coordinate.within(self.scales + self.scale_step))
        self.scale_step.zero_()

    def _generation(self, net: int, batch: Batch, now: Now) -> Seen:
        """What a net's perturbations tell on its rows; nothing of it is kept yet."""
        x, y = rows_of(batch, net)
        if self.problem.uses.random:  # what layers draw by themselves belongs to the step, whoever takes it
            reseed((int(now.stream.seeds[net]), int(now.stream.step), "middle"), self.mean.device)
        at, buffers = self.at(net), {name: b[net].clone() for name, b in self._buffers.items()}
        if self.norms:  # the running statistics are those of the net in the middle
            call(self.problem.net, self.problem.layout.weights(at.mean), buffers, x)
        rows = Rows(x, y, buffers)
        at = self._safely(net, at, rows)
        work = self._work(net, at, rows)
        # Nets of a fleet have generations of their own, one after the other.
        number = int(now.stream.step) * self.nets + net
        slopes, values, nll = work.estimate(at, int(now.stream.step), rows, self._numbered(number, net, at))
        told = {
            "objective": float(_mean_of_known(values)) * self.fleet[net].objective.sign,
            "scale": float(at.scale.log().mean().exp()),
            **slopes.norms(),
        }
        return Seen(at, slopes, buffers, _mean_of_known(nll), told)

    def _safely(self, net: int, at: Gaussian, rows: Rows) -> Gaussian:
        """The same with weights perturbed the less, the more they move the outputs on these rows, if so asked."""
        kind = self.fleet[net].sensitivity
        if kind is None:
            return at

        def run(weights: Mapping[str, Tensor], x: Inputs) -> Tensor:
            with settled_norms(self.problem.net):
                return call(self.problem.net, weights, dict(rows.buffers), x)

        found = sensitivity.TABLE[kind](run, self.problem.layout, at.mean, rows.x)
        return replace(at, relative=sensitivity.safe(found))

    def _numbered(self, number: int, net: int, at: Gaussian) -> Exchange:
        place = at.mean, at.scale, self.populations[net].seeds

        def exchange(_: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
            return self.exchange(number, Placed(evaluate, place), blocks)

        return exchange

    def _work(self, net: int, at: Gaussian, rows: Rows) -> AtWork:
        found = self.at_work[net]
        if found is None:
            own, objective = self.fleet[net], self.fleet[net].objective
            weights = self.problem.layout.weights(at.mean)
            output = call(self.problem.net, weights, {k: b.clone() for k, b in rows.buffers.items()}, rows.x)
            scene = Scene(
                self.problem,
                self.populations[net],
                objective,
                objective.by_row(output.to(at.mean.dtype), rows.y),
                self.problem.uses.vectorises,
                own.engine.parts,
            )
            found = self.at_work[net] = own.estimator.start(scene)
            self.noise = found.noise
        return found

    def _gradients(self) -> list[tuple[Tensor, Tensor]]:
        return [
            own.gradient(slopes, self.at(k), self.coordinate)
            for k, (own, slopes) in enumerate(zip(self.fleet, self.slopes, strict=True))
        ]

    @torch.no_grad()
    def _decay(self, rates: Tensor) -> None:
        for k, own in enumerate(self.fleet):
            if own.decay:
                self.mean[k] *= 1 - rates[k].clamp_min(0) * own.decay

    @torch.no_grad()
    def fill_gradients(self, now: Now) -> None:
        for p in self.parameters:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        assert self.mean.grad is not None
        assert self.scale_step.grad is not None
        for k, (by_mean, by_scale) in enumerate(self._gradients()):
            own = self.fleet[k]
            self.mean.grad[k] = by_mean + own.decay * self.mean.detach()[k]
            self.scale_step.grad[k] = own.scale_rate * by_scale

    @torch.no_grad()
    def descend(self, now: Now, pace: Pace, moments: Sequence[Moments]) -> None:
        self._decay(pace.rates)
        found = self._gradients()
        adam(self.mean.detach(), torch.stack([by_mean for by_mean, _ in found]), pace, moments[0])
        share = pace.rates.new_tensor([own.scale_rate for own in self.fleet])
        if bool((share > 0).any()):
            own_pace = replace(pace, rates=torch.where(pace.rates < 0, pace.rates, pace.rates * share))
            adam(self.scale_step.detach(), torch.stack([by_scale for _, by_scale in found]), own_pace, moments[1])

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        epsilon = torch.empty_like(self.mean)
        fill_normals(epsilon, stream)
        return torch.stack(
            [at.mean + at.scales * e for at, e in zip(map(self.at, range(self.nets)), epsilon, strict=True)]
        )

    def posterior(self, member: int) -> Posterior:
        at, random = self.at(member), self.problem.layout.random
        if at.relative is not None:
            return MeanField(at.mean.clone(), inverse_softplus(at.scales[:random]))
        scale = at.scale if self.groups is None else at.scale[: len(_of_random(self.groups, random))]
        groups = None if self.groups is None else _of_random(self.groups, random)
        rho = inverse_softplus(scale[:random] if groups is None else scale)
        return MeanField(at.mean.clone(), rho, groups)

    def complexity(self, member: int) -> Estimate:
        return Estimate(0.0)

    def complexities(self, members: Sequence[int]) -> list[Estimate]:
        return [Estimate(0.0) for _ in members]

    def told(self, member: int) -> dict[str, float]:
        """What the last step saw, by name."""
        return self.seen[member]

    def trouble(self, member: int) -> str | None:
        if not bool(self.at(member).scale.isfinite().all()):
            return "the scales are no longer finite"
        return not_finite(self.problem.layout, self.mean.detach()[member])

    def state(self) -> dict[str, Tensor]:
        self._settle_scales()
        own = {"mean": self.mean, "scales": self.scales, "relative": self.relative}
        return {**own, **{f"buffers.{k}": b for k, b in self._buffers.items()}}

    def buffers(self, member: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[member].clone() for k, b in self._buffers.items()},)


def _of_random(groups: tuple[int, ...], random: int) -> tuple[int, ...]:
    """The groups of the random weights: all but the last, where point estimates have one."""
    return groups if sum(groups) == random else groups[:-1]


def _mean_of_known(values: Tensor) -> Tensor:
    """The mean of what is a number: perturbations that are none count as the worst, and do not end a run."""
    return values[values.isfinite()].mean()
