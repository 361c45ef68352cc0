"""Point estimates: maximum likelihood and MAP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doxa.collectors.last import Last
from doxa.contracts import Prior, Problem, Schedule
from doxa.gradients.point import PointGradient, PriorSlope
from doxa.kl_weights import uniform
from doxa.posteriors import delta
from doxa.weights.layout import bind_prior


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

    def start(self, problem: Problem, fleet: Sequence[Point]) -> PointGradient:
        priors = [bind_prior(settings.prior, problem.layout, problem.start[0]) for settings in fleet]
        random = problem.layout.random
        slopes: list[PriorSlope | None] = [None if prior is None else prior.grad_log_prob for prior in priors]
        return PointGradient(problem, priors, slopes, make_posterior=lambda mean, _: delta(mean, random))

    def optimiser(self, fleet: Sequence[Point]) -> None:
        return None

    def collector(self, fleet: Sequence[Point]) -> Last:
        return Last()
