"""Point estimates: maximum likelihood and MAP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Batch, Estimate, Now, Posterior, Prior, Problem, Schedule, Training
from doxa.flat import Moments, Pace, adam
from doxa.kl_weights import uniform
from doxa.layout import not_finite, settle
from doxa.learners.passes import Passes, Sites
from doxa.noise.interception import Rule
from doxa.noise.leaves import ROWS, Gathered, leaves_of, runs
from doxa.philox import Stream
from doxa.posteriors import delta
from doxa.posteriors.divergence import kl

# The slopes of log p at a net's weights [R].
Slope = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Point:
    """One best vector of weights: maximum likelihood without a prior, MAP with one.

    w* = argmin_w −(1/N) Σᵢ log p(yᵢ | xᵢ, w) − (1/N) log p(w)

    Bishop (2006), Pattern recognition and machine learning, section 5.2.
    """

    prior: Prior | None = None
    kl_weight: Schedule = field(default_factory=uniform)

    nets = 1

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program."""
        return (Point,)

    def start(self, problem: Problem, fleet: Sequence[Point]) -> Training:
        priors = [settle(own.prior, problem.layout, problem.start[0]) for own in fleet]
        random = problem.layout.random
        slopes: list[Slope | None] = [None if own is None else own.grad_log_prob for own in priors]
        return PointTraining(problem, priors, slopes, believe=lambda mean, _: delta(mean, random))


class PointTraining:
    """Vectors of weights at work: the nets run on views of them, gradients come back as rows."""

    def __init__(
        self,
        problem: Problem,
        priors: Sequence[Prior | None],
        slopes: Sequence[Slope | None],
        believe: Callable[[Tensor, int], Posterior],
        noise: dict[str, str] | None = None,
        sites: Sites | None = None,
        rule: Rule | None = None,
        drawn: Callable[[Tensor, Stream], Tensor] = lambda mean, stream: mean,
    ) -> None:
        self.problem, self.priors, self.slopes, self.believe = problem.light(), priors, slopes, believe
        self.drawn = drawn
        self.nets = self.members = len(priors)
        self.mean = problem.start.clone().requires_grad_()
        leaves = leaves_of(problem.layout, self.mean.detach(), problem.together)
        steal = problem.together or self.nets == 1
        self.gathered = [
            (slice(run[0].start, run[-1].stop), Gathered(run, leaves, self.nets, problem.start))
            for run in runs(problem.layout.slots, lambda s: s.random, steal)
        ]
        self.passes = Passes(self.problem, leaves, None, sites, rule, problem.together)
        self._buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.parameters: Sequence[Tensor] = [self.mean]
        self.noise = noise or {s.name: "point" for s in problem.layout.slots}

    def step(self, batch: Batch, now: Now) -> Tensor:
        for _, gathered in self.gathered:
            gathered.clear()
        return self.passes(batch, self._buffers, [(now.stream.other(ROWS), 1.0)])

    @torch.no_grad()
    def _gradients(self, now: Now) -> list[tuple[slice, Tensor]]:
        found = [(span, gathered.rows) for span, gathered in self.gathered]
        random = self.problem.layout.random
        for k, slope in enumerate(self.slopes):
            if slope is None:
                continue
            pull = slope(self.mean.detach()[k, :random]) * now.weights[k]
            for span, rows in found:
                if span.start < random:
                    rows[k].sub_(pull[span])
        return found

    @torch.no_grad()
    def fill_gradients(self, now: Now) -> None:
        if self.mean.grad is None:
            self.mean.grad = torch.zeros_like(self.mean)
        for span, rows in self._gradients(now):
            self.mean.grad[:, span] = rows

    @torch.no_grad()
    def descend(self, now: Now, pace: Pace, moments: Sequence[Moments]) -> None:
        for span, rows in self._gradients(now):
            adam(self.mean.detach()[:, span], rows, pace, moments[0].part(span))

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        return self.drawn(self.mean.detach().clone(), stream)

    def posterior(self, member: int) -> Posterior:
        return self.believe(self.mean.detach()[member].clone(), member)

    def complexity(self, member: int) -> Estimate:
        return kl(self.posterior(member), self.priors[member])

    def complexities(self, members: Sequence[int]) -> list[Estimate]:
        return [Estimate(0.0) if self.priors[k] is None else self.complexity(k) for k in members]

    def trouble(self, member: int) -> str | None:
        return not_finite(self.problem.layout, self.mean.detach()[member])

    def told(self, member: int) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean, **{f"buffers.{k}": b for k, b in self._buffers.items()}}

    def buffers(self, member: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[member].clone() for k, b in self._buffers.items()},)
