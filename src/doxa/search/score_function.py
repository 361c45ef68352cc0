"""The gradient of an expected objective, estimated from its values at perturbations of the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.contracts import Batch, Estimate, Inputs, Posterior, Problem
from doxa.data.rows import rows_of
from doxa.engine.context import StepContext
from doxa.engine.contracts import SCALES, Beliefs, Parameter, Recipe, State
from doxa.engine.recipes import GradientRows
from doxa.posteriors import MeanField
from doxa.posteriors.mean_field import inverse_softplus
from doxa.random.keys import reseed
from doxa.random.philox import Stream, fill_normals
from doxa.search import sensitivity
from doxa.search.distribution.gaussian import Gaussian, Slopes, groups_of
from doxa.search.engines.contract import Evaluate, Exchange, Placed
from doxa.search.engines.in_process import evaluated
from doxa.search.perturbations.population import population
from doxa.search.scene import Rows, Scene, settled_norms
from doxa.weights.batch_norm import has_batch_norm
from doxa.weights.layout import call


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
class Seen:
    """What one net's generation came to: where it looked, the slopes there, its buffers, its NLL, words for records."""

    at: Gaussian
    slopes: Slopes
    buffers: dict[str, Tensor]
    loss: Tensor
    told: dict[str, float]


class ScoreFunction:
    """Search distributions: rows of means and of coordinates of scales, moved by estimated slopes.

    ∇U = E_p(w|θ) f(w) ∇log p(w|θ)

    Its `engine` has workers evaluate; each of them holds a copy of the run, and `exchange` is how they are heard.
    Williams (1992), Simple statistical gradient-following algorithms for connectionist reinforcement learning.
    """

    eager = ""  # what is compared must first be known: nobody would expect a recording

    def __init__(self, fleet: Sequence[Any], problem: Problem) -> None:
        self.fleet, self.problem, self.engine = fleet, problem.light(), fleet[0].engine
        self.nets = len(fleet)
        own = fleet[0]
        self.groups = groups_of(own.per, problem.layout)
        self.coordinate = own.coordinate
        self.mean = problem.start.clone()
        count = problem.layout.size if self.groups is None else len(self.groups)
        starts = torch.stack([problem.start.new_full((count,), one.scale) for one in fleet])
        self.scales = self.coordinate.of(starts)
        # What an optimiser adds to the scales at a step: zero before it, so that weight decay has nothing to draw on.
        self.scale_step = torch.zeros_like(self.scales)
        self.parameters = [Parameter("mean", self.mean), Parameter("scale_step", self.scale_step, SCALES)]
        self.populations = [
            population(one.size, one.estimator.antithetic, (*key, "search"), problem.start.device)
            for one, key in zip(fleet, problem.seeds, strict=True)
        ]
        self.at_work: list[AtWork | None] = [None] * self.nets
        self.found: list[Slopes] = []
        self.relative = torch.ones_like(self.mean) if any(one.sensitivity for one in fleet) else self.mean[:, :0]
        self.norms = has_batch_norm(problem.net)
        self.buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.noise = {s.name: "search" if s.random else "search, point" for s in problem.layout.slots}
        self.seen: list[dict[str, float]] = [{} for _ in fleet]
        self.passed: list[Seen] = []  # of the step under way: a copy made in it goes on with the next net
        self.exchange: Exchange = evaluated

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a worker, which has another exchange and finds estimators anew."""
        return {**self.__dict__, "exchange": None, "at_work": [None] * self.nets, "found": []}

    def at(self, net: int) -> Gaussian:
        """Where one net's search looks now."""
        relative = self.relative[net] if self.fleet[net].sensitivity else None
        scale = self.coordinate.scale(self.scales[net] + self.scale_step[net])
        return Gaussian(self.mean[net], scale, self.groups, relative)

    @torch.no_grad()
    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        try:
            while len(self.passed) < self.nets:
                self.passed.append(self._generation(len(self.passed), batch, context))
            seen = self.passed
        finally:
            self.passed = []
        # All or nothing: a net whose evaluation failed has left the others where they were.
        self._settle_scales()
        for k, one in enumerate(seen):
            for name, b in one.buffers.items():
                self.buffers[name][k] = b
            if one.at.relative is not None:
                self.relative[k] = one.at.relative
            self.seen[k] = one.told
        self.found = [one.slopes for one in seen]
        return torch.stack([one.loss for one in seen])

    @torch.no_grad()
    def _settle_scales(self) -> None:
        """Whoever took the last step, an optimiser of torch's or this one, scales go on from within their bounds."""
        self.scales.copy_(self.coordinate.within(self.scales + self.scale_step))
        self.scale_step.zero_()

    def _generation(self, net: int, batch: Batch, context: StepContext) -> Seen:
        """What a net's perturbations tell on its rows; nothing of it is kept yet."""
        x, y = rows_of(batch, net)
        if self.problem.uses.random:  # what layers draw by themselves belongs to the step, whoever takes it
            reseed((int(context.stream.seeds[net]), int(context.stream.step), "middle"), self.mean.device)
        at, buffers = self.at(net), {name: b[net].clone() for name, b in self.buffers.items()}
        if self.norms:  # the running statistics are those of the net in the middle
            call(self.problem.net, self.problem.layout.weights(at.mean), buffers, x)
        rows = Rows(x, y, buffers)
        at = self._safely(net, at, rows)
        work = self._work(net, at, rows)
        # Nets of a fleet have generations of their own, one after the other.
        number = int(context.stream.step) * self.nets + net
        slopes, values, nll = work.estimate(at, int(context.stream.step), rows, self._numbered(number, net, at))
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
                self.engine.parts,
            )
            found = self.at_work[net] = own.estimator.start(scene)
            self.noise = found.noise
        return found

    def _gradients(self) -> list[tuple[Tensor, Tensor]]:
        return [
            own.gradient(slopes, self.at(k), self.coordinate)
            for k, (own, slopes) in enumerate(zip(self.fleet, self.found, strict=True))
        ]

    @torch.no_grad()
    def slopes(self, context: StepContext, prior: bool = True) -> list[Recipe]:
        by_mean, by_scale = (torch.stack(rows) for rows in zip(*self._gradients(), strict=True))
        whole = slice(0, self.mean.shape[1])
        decay = self.mean.new_tensor([own.decay for own in self.fleet])
        found: list[Recipe] = [
            GradientRows("mean", whole, True, by_mean, self.mean, decay=decay if bool(decay.any()) else None)
        ]
        share = self.mean.new_tensor([own.scale_rate for own in self.fleet])
        if bool((share > 0).any()):
            columns = slice(0, self.scale_step.shape[1])
            found.append(GradientRows("scale_step", columns, True, by_scale, self.scale_step, rate=share))
        return found

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Beliefs:
        mean, step = (self.mean, self.scale_step) if at is None else (at["mean"], at["scale_step"])
        return SearchBeliefs(self, mean, step)

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        """What the last step saw, by name."""
        return [self.seen[k] for k in nets]

    def state(self) -> State:
        kept = {"mean": self.mean, "scales": self.scales, "scale_step": self.scale_step}
        return State(kept, {"relative": self.relative, **{f"buffers.{k}": b for k, b in self.buffers.items()}})


@dataclass(frozen=True, eq=False)
class SearchBeliefs:
    """What means [K, P] and steps of scales stand for: Gaussians over all weights."""

    of: ScoreFunction
    mean: Tensor
    step: Tensor

    @property
    def noise(self) -> dict[str, str]:
        return self.of.noise

    def at(self, net: int) -> Gaussian:
        """One net's search distribution, its scales within their bounds."""
        of = self.of
        relative = of.relative[net] if of.fleet[net].sensitivity else None
        scale = of.coordinate.scale(of.coordinate.within(of.scales[net] + self.step[net]))
        return Gaussian(self.mean[net], scale, of.groups, relative)

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        epsilon = torch.empty_like(self.mean)
        fill_normals(epsilon, stream)
        places = map(self.at, range(len(self.mean)))
        return torch.stack([at.mean + at.scales * e for at, e in zip(places, epsilon, strict=True)])

    def posterior(self, net: int) -> Posterior:
        at, random, groups = self.at(net), self.of.problem.layout.random, self.of.groups
        if at.relative is not None:
            return MeanField(at.mean.clone(), inverse_softplus(at.scales[:random]))
        if groups is None:
            return MeanField(at.mean.clone(), inverse_softplus(at.scale[:random]))
        own = _of_random(groups, random)
        return MeanField(at.mean.clone(), inverse_softplus(at.scale[: len(own)]), own)

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[net].clone() for k, b in self.of.buffers.items()},)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        return [Estimate(0.0) for _ in nets]


def _of_random(groups: tuple[int, ...], random: int) -> tuple[int, ...]:
    """The groups of the random weights: all but the last, where point estimates have one."""
    return groups if sum(groups) == random else groups[:-1]


def _mean_of_known(values: Tensor) -> Tensor:
    """The mean of what is a number: perturbations that are none count as the worst, and do not end a run."""
    return values[values.isfinite()].mean()
