"""The mean of the second half of the way.

A recipe of parts that exist: the gradient of a point estimate, any stepper, and a collector of averages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doxa.collectors.average import Average
from doxa.contracts import Prior, Problem, Schedule
from doxa.gradients.point import PointGradient
from doxa.kl_weights.uniform import Uniform
from doxa.learners.example import Example
from doxa.learners.point import Point


@dataclass(frozen=True)
class SecondHalf:
    """Maximum likelihood or MAP, and of the way there the mean of the weights after each epoch of the second half.

    Polyak & Juditsky (1992), Acceleration of stochastic approximation by averaging.
    """

    prior: Prior | None = None
    kl_weight: Schedule = field(default_factory=Uniform)

    nets = 1

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program: the numbers of their priors may differ."""
        return (SecondHalf,)

    def start(self, problem: Problem, fleet: Sequence[SecondHalf]) -> PointGradient:
        points = [Point(settings.prior, settings.kl_weight) for settings in fleet]
        return points[0].start(problem, points)

    def optimiser(self, fleet: Sequence[SecondHalf]) -> None:
        return None  # any will do

    def collector(self, fleet: Sequence[SecondHalf]) -> Average:
        return Average(start_at=0.5)


second_half = SecondHalf
EXAMPLES = {"second_half": {"map": Example(SecondHalf, "map")}}
