"""A rate that falls for ever, slowly enough for a sampler to reach everything."""

from __future__ import annotations

from dataclasses import dataclass

from doxa.contracts import Moment
from doxa.errors import BadInput, require_positive


@dataclass(frozen=True)
class Polynomial:
    """A rate that falls with a power of the steps.

    γ(k) = rate · (1 + k / c)^−power,  c = after · M

    k counts steps from 0, M is the minibatches of an epoch: after `after` epochs it has fallen to 2^−power of the
    first. For Langevin dynamics the power must lie above ½ and at most at 1, so that the steps sum to infinity and
    their squares do not.
    Welling & Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics.
    """

    rate: float
    after: float = 1.0
    power: float = 0.55

    def __post_init__(self) -> None:
        require_positive("rate", self.rate)
        require_positive("after", self.after)
        if not 0 <= self.power <= 1:
            raise BadInput(f"power must lie between 0 and 1, got {self.power}")

    def __call__(self, moment: Moment) -> float:
        return float(self.rate * (1 + moment.step / (self.after * moment.batches)) ** -self.power)


polynomial = Polynomial
EXAMPLES = {"polynomial": (Polynomial(0.1, after=2, power=0.7),)}
