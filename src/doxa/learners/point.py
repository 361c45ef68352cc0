"""Point estimates: maximum likelihood and MAP.

The log-prior is weighed by the same schedule as a KL would be, β/N: as a belief narrows to a point at w, KL(q‖p)
becomes −log p(w) and a constant, so that a point and a mean field under one prior and one β are comparable, and so are
their tempered versions. Point estimates among the parameters (BatchNorm's, the likelihood's) have no prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doxa.collectors.last import Last
from doxa.contracts import Prior, Problem, Schedule
from doxa.gradients.point import PointGradient, PriorSlope
from doxa.kl_weights.uniform import Uniform
from doxa.learners.example import Example
from doxa.posteriors import delta
from doxa.weights.layout import bind_prior


@dataclass(frozen=True)
class Point:
    """One best vector of weights: maximum likelihood without a prior, MAP with one.

    w* = argmin_w −(1/N) Σᵢ log p(yᵢ | xᵢ, w) − (1/N) log p(w)

    Bishop (2006), Pattern recognition and machine learning, section 5.2.
    """

    prior: Prior | None = None
    kl_weight: Schedule = field(default_factory=Uniform)

    nets = 1

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program: the numbers of their priors may differ."""
        return (type(self),)

    def start(self, problem: Problem, fleet: Sequence[Point]) -> PointGradient:
        priors = [bind_prior(settings.prior, problem.layout, problem.start[0]) for settings in fleet]
        random = problem.layout.random
        slopes: list[PriorSlope | None] = [None if prior is None else prior.grad_log_prob for prior in priors]
        return PointGradient(problem, priors, slopes, make_posterior=lambda mean, _: delta(mean, random))

    def optimiser(self, fleet: Sequence[Point]) -> None:
        return None  # any will do: a minimum is looked for, however it is reached

    def collector(self, fleet: Sequence[Point]) -> Last:
        return Last()


point = Point
EXAMPLES = {"point": {"likelihood": Example(lambda prior: Point(), "least squares"), "map": Example(Point, "map")}}
