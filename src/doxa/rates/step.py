"""A rate that falls in stairs."""

from __future__ import annotations

from dataclasses import dataclass

from doxa.contracts import Moment
from doxa.errors import BadInput, require_positive


@dataclass(frozen=True)
class Step:
    """A rate multiplied by `factor` after every `every` epochs.

    γ(k) = rate · factor^⌊k / c⌋,  c = every · M, rounded and at least 1

    k counts steps from 0, M is the minibatches of an epoch, `every` may be a fraction.
    He et al. (2016), Deep residual learning for image recognition.
    """

    rate: float
    every: float
    factor: float = 0.5

    def __post_init__(self) -> None:
        require_positive("rate", self.rate)
        require_positive("every", self.every)
        if not 0 < self.factor <= 1:
            raise BadInput(f"factor must be above 0 and at most 1, got {self.factor}")

    def __call__(self, moment: Moment) -> float:
        steps_per_stair = max(1, round(self.every * moment.batches))
        return float(self.rate * self.factor ** (moment.step // steps_per_stair))


step = Step
EXAMPLES = {"step": (Step(0.1, every=2),)}
