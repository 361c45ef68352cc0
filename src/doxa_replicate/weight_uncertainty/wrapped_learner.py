"""A learner about another one: what it does not change is the other's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from doxa.contracts import Prior, Schedule
from doxa.engine.contracts import Learner


@dataclass(frozen=True)
class WrappedLearner:
    """Another learner but for `start`, which is left to whoever wraps it."""

    learner: Learner

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
    def samples(self) -> int:
        return int(getattr(self.learner, "samples", 1))

    @property
    def kind(self) -> tuple[Any, ...]:
        return type(self), *self.learner.kind

    def optimiser(self, fleet: Sequence[WrappedLearner]) -> Any:
        return self.learner.optimiser([each.learner for each in fleet])

    def collector(self, fleet: Sequence[WrappedLearner]) -> Any:
        return self.learner.collector([each.learner for each in fleet])
