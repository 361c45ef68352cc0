"""How long workers have been silent, by a clock that runs only while they could have been heard."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]

BEATS = 5  # of a worker in the time after which it is lost
SLOWEST_BEAT = 1.0  # seconds


def beat_interval(silence: float, deadline: float | None = None) -> float:
    """Seconds from one beat of a worker to the next."""
    return min(SLOWEST_BEAT, silence / BEATS, (deadline or silence) / BEATS)


@dataclass
class Attention:
    """Seconds in which the search listened.

    A process that was stopped itself, or busy elsewhere, has not heard what its workers said meanwhile: of a longer
    gap between two looks no more than `longest` counts.
    """

    longest: float
    clock: Clock = time.monotonic
    seconds: float = 0.0
    looked_at: float | None = None

    def begin(self) -> None:
        """Listen from now on; what was before does not count."""
        self.looked_at = self.clock()

    def look(self) -> float:
        """The seconds by now."""
        now = self.clock()
        if self.looked_at is not None:
            self.seconds += min(now - self.looked_at, self.longest)
        self.looked_at = now
        return self.seconds
