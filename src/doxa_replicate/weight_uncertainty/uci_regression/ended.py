"""A schedule for a part of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from doxa.contracts import Moment, Schedule
from doxa.errors import BadInput


@dataclass(frozen=True)
class TruncatedSchedule:
    """Another schedule, run through in the first `share` of the steps; then nothing moves any more.

    γ(k) = schedule(k of share · K steps) for k < share · K, and 0 from then on

    So trainings of different lengths are members of one fleet.
    """

    schedule: Schedule
    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise BadInput(f"share must be above 0 and at most 1, got {self.share}")

    def __call__(self, moment: Moment) -> float:
        steps = max(1, round(self.share * moment.steps))
        return self.schedule(replace(moment, steps=steps)) if moment.step < steps else 0.0
