"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doxa.collectors.chain import Chain
from doxa.contracts import Prior, Problem, Schedule
from doxa.errors import BadInput
from doxa.gradients.point import PointGradient
from doxa.kl_weights import uniform
from doxa.learners.point import Point
from doxa.optimisers.langevin import Langevin as LangevinSteps
from doxa.optimisers.langevin import Temperature


@dataclass(frozen=True)
class Langevin:
    """Samples of the posterior: gradient descent with noise, whose steps are kept from a share `burn_in` of the run on.

    w ← w − lr · ∇F/N + √(2 · lr · T / N) · ξ,  ξ ~ N(0, 1)

    `lr` of fit is the rate: constant, or falling as doxa.rates.polynomial does, with which the bias of minibatches and
    of finite steps dies out. A `temperature` T below 1 samples the posterior to the power 1/T, a colder one than the
    true. Every `thinning`-th step is kept, one an epoch unless told, in memory or `on_disk` in the run's folder.
    Welling & Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics.
    """

    prior: Prior
    temperature: Temperature = 1.0
    burn_in: float = 0.5
    thinning: int | None = None
    on_disk: bool = False
    kl_weight: Schedule = field(default_factory=uniform)

    nets = 1

    def __post_init__(self) -> None:
        if isinstance(self.prior, type) or not hasattr(self.prior, "grad_log_prob"):
            raise BadInput(f"prior must be one of doxa.priors, e.g. doxa.priors.gaussian(1.0); got {self.prior!r}")
        if isinstance(self.kl_weight, type) or not callable(self.kl_weight):
            raise BadInput(f"kl_weight must be one of doxa.kl_weights, e.g. uniform(); got {self.kl_weight!r}")
        self.optimiser([self])
        self.collector([self])

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program."""
        return Langevin, self.burn_in, self.thinning, self.on_disk

    def start(self, problem: Problem, fleet: Sequence[Langevin]) -> PointGradient:
        points = [Point(settings.prior, settings.kl_weight) for settings in fleet]
        return points[0].start(problem, points)

    def optimiser(self, fleet: Sequence[Langevin]) -> LangevinSteps:
        return LangevinSteps(tuple(settings.temperature for settings in fleet))

    def collector(self, fleet: Sequence[Langevin]) -> Chain:
        return Chain(self.burn_in, self.thinning, self.on_disk)
