"""What learners have in common that keep another one's way in a way of their own.

Averages are taken of weights, not of predictions: one net comes out, at the price of one, in the middle of what a noisy
optimiser wanders around. That needs a way within one valley, hence one net; members of an ensemble lie in different
ones and are averaged each by itself. And it needs weights: a mean of rhos is not the rho of the mean scale, so that the
collector refuses learners of scales.

The mean of the weights is a net that has never run. BatchNorm's running statistics are those of the weights that did,
and at other weights activations have other means and variances: one pass over the data takes them anew before the
belief is made (`doxa.weights.batch_norm`), as Izmailov et al. (2018) do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doxa.collectors.last import Last
from doxa.contracts import Prior, Problem, Schedule
from doxa.engine.contracts import Gradient, Learner
from doxa.errors import BadInput
from doxa.learners.point import Point


@dataclass(frozen=True)
class AveragingLearner(ABC):
    """Another learner's gradient and steps, and a collector beside them; maximum likelihood unless told."""

    learner: Learner = field(default_factory=Point)

    def __post_init__(self) -> None:
        if isinstance(self.learner, type) or not hasattr(self.learner, "collector"):
            raise BadInput(f"learner must be one of doxa.learners, with brackets; got {self.learner!r}")
        if self.learner.nets > 1:
            name = type(self).__name__.lower()
            raise BadInput(f"an ensemble's members are averaged each by itself: write ensemble({name}(...))")
        # There is one collector a run: this one would take the place of the learner's, and its samples would be lost.
        if not isinstance(self.learner.collector([self.learner]), Last):
            raise BadInput(
                f"{type(self.learner).__name__} keeps its way in a way of its own, which would be lost: average point, "
                "dropout or another learner of points"
            )
        self.collector([self])  # which checks its own settings, now rather than when learning starts

    @property
    def prior(self) -> Prior | None:
        return self.learner.prior

    @property
    def kl_weight(self) -> Schedule:
        return self.learner.kl_weight

    @property
    def nets(self) -> int:
        return self.learner.nets

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program: when they average, and what they average."""
        return type(self), self.collector([self]), self.learner.kind

    def start(self, problem: Problem, fleet: Sequence[Any]) -> Gradient:
        return self.learner.start(problem, [settings.learner for settings in fleet])

    def optimiser(self, fleet: Sequence[Any]) -> Any:
        return self.learner.optimiser([settings.learner for settings in fleet])

    @abstractmethod
    def collector(self, fleet: Sequence[Any]) -> Any:
        """What is kept of the way."""
