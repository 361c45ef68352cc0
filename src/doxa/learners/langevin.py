"""Stochastic gradient Langevin dynamics.

The diffusion dw = −∇F dt + √(2T) dB has the posterior to the power 1/T, exp(−F/T), for its stationary distribution. One
Euler step of length η = lr/N is w − lr ∇F/N + √(2 lr T/N) ξ: gradient descent at the rate lr on the loss a row, which
is what every learner here goes down, and noise whose size the rate decides. The noise of minibatches has variance of
order lr², that which is put in of order lr: as lr falls the first one vanishes beside it (Welling & Teh, 2011).

Hence the stepper is the learner's own, and `optimiser` of fit is refused. Noise belongs to a rate; Adam divides by a
root that depends on the way, and without a correction for how that changes from place to place, as in Li et al. (2016),
Preconditioned stochastic gradient Langevin dynamics for deep neural networks, it would sample something else. There is
no `patience` either: it goes back to the epoch that validated best, and a chain has no best state. What is believed is
all of it, a draw as probable as the posterior makes it; to keep the best would make an optimum of a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doxa.collectors.chain import Chain
from doxa.contracts import Prior, Problem, Schedule
from doxa.errors import BadInput
from doxa.gradients.point import PointGradient
from doxa.kl_weights.uniform import Uniform
from doxa.learners.example import Example
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
    kl_weight: Schedule = field(default_factory=Uniform)

    nets = 1

    def __post_init__(self) -> None:
        if isinstance(self.prior, type) or not hasattr(self.prior, "grad_log_prob"):
            raise BadInput(f"prior must be one of doxa.priors, e.g. doxa.priors.gaussian(1.0); got {self.prior!r}")
        if isinstance(self.kl_weight, type) or not callable(self.kl_weight):
            raise BadInput(f"kl_weight must be one of doxa.kl_weights, e.g. uniform(); got {self.kl_weight!r}")
        self.optimiser([self])  # both check their settings, before anything is learned
        self.collector([self])

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program: temperatures may differ, moments of keeping not."""
        return type(self), self.burn_in, self.thinning, self.on_disk

    def start(self, problem: Problem, fleet: Sequence[Langevin]) -> PointGradient:
        # Noise is the stepper's: what it goes down is the gradient of MAP.
        points = [Point(settings.prior, settings.kl_weight) for settings in fleet]
        return points[0].start(problem, points)

    def optimiser(self, fleet: Sequence[Langevin]) -> LangevinSteps:
        return LangevinSteps(tuple(settings.temperature for settings in fleet))

    def collector(self, fleet: Sequence[Langevin]) -> Chain:
        return Chain(self.burn_in, self.thinning, self.on_disk)


langevin = Langevin
EXAMPLES = {
    "langevin": {
        # A mean of few samples.
        "cold": Example(lambda prior: Langevin(prior, 0.5, burn_in=0.0, thinning=2), "map", tolerance=0.5)
    }
}
