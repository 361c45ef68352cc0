"""Stochastic weight averaging.

Steps of a constant rate do not end at a minimum but circle around it, at a distance that the rate decides; the mean of
points on the circle lies inside. The first part of the way leads there and does not belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from doxa.collectors.average import Average
from doxa.learners.averaging import AveragingLearner
from doxa.learners.example import Example


@dataclass(frozen=True)
class Swa(AveragingLearner):
    """The mean of the weights along the last part of the way, of a learner of points.

    w̄ = (1/n) Σᵢ wᵢ,  i = every-th step from a share `start_at` of the run on

    Without `every` it is one an epoch. A high constant or cyclical rate (doxa.rates) gives it something to average.
    Izmailov et al. (2018), Averaging weights leads to wider optima and better generalization.
    """

    start_at: float = 0.75
    every: int | None = None

    def collector(self, fleet: Sequence[Swa]) -> Average:
        return Average(self.start_at, self.every)


swa = Swa
EXAMPLES = {
    "swa": {"point": Example(lambda prior: Swa(start_at=0.0), "least squares", tolerance=0.3)}  # the way there counts
}
