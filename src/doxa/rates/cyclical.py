"""A rate that falls again and again."""

from __future__ import annotations

from dataclasses import dataclass

from doxa.contracts import Moment
from doxa.errors import BadInput, require_positive


@dataclass(frozen=True)
class Cyclical:
    """In each cycle of `cycle` epochs a straight line from near `high` to `low`, where nets are averaged.

    γ(k) = (1 − t) · high + t · low,  t = (mod(k, c) + 1) / c

    k counts steps from 0; c = cycle · M, rounded and at least 1, with M the minibatches of an epoch.
    The last step of every cycle has exactly `low`.
    Izmailov et al. (2018), Averaging weights leads to wider optima and better generalization.
    """

    high: float
    low: float
    cycle: float

    def __post_init__(self) -> None:
        require_positive("high", self.high)
        require_positive("cycle", self.cycle)
        if not 0 <= self.low <= self.high:
            raise BadInput(f"low must lie between 0 and high ({self.high}), got {self.low}")

    def __call__(self, moment: Moment) -> float:
        length = max(1, round(self.cycle * moment.batches))
        t = (moment.step % length + 1) / length
        return (1 - t) * self.high + t * self.low


cyclical = Cyclical
EXAMPLES = {"cyclical": (Cyclical(0.1, 0.001, cycle=1.5),)}
