"""The moving average of weights.

Where SWA waits for the last part of the way and then counts all of it alike, this forgets: it needs no idea of how long
the run will be, and follows a rate that falls. Dividing by 1 − dᵗ takes out the zeros it began with, as in Adam.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from doxa.collectors.moving_average import MovingAverage
from doxa.learners.averaging import AveragingLearner
from doxa.learners.example import Example


@dataclass(frozen=True)
class Ema(AveragingLearner):
    """The moving average of the weights after every step, of a learner of points.

    w̄ₜ = (1 − d) Σ_{s ≤ t} d^{t−s} wₛ / (1 − dᵗ)

    Polyak & Juditsky (1992), Acceleration of stochastic approximation by averaging; Tarvainen & Valpola (2017), Mean
    teachers are better role models.
    """

    decay: float = 0.999

    def collector(self, fleet: Sequence[Ema]) -> MovingAverage:
        return MovingAverage(self.decay)


ema = Ema
EXAMPLES = {"ema": {"point": Example(lambda prior: Ema(decay=0.9), "least squares")}}
