"""What every question is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

QUICK = 3  # rounds of a look that is no measurement
HURRY = 0.1  # of the time that a measurement may take


def _discard(text: object) -> None:
    pass


@dataclass(frozen=True)
class BenchSettings:
    """How long to measure, where, and which cases; `say` hears findings, `progress` what is going on meanwhile.

    `seed` and `minutes` are for campaigns of random cases.
    """

    rounds: int | None = None
    quick: bool = False
    device: str = "cpu"
    only: str = ""
    seed: int = 0
    minutes: float | None = None
    say: Callable[[object], None] = _discard
    progress: Callable[[object], None] = _discard

    def round_count(self, default: int) -> int:
        """How many rounds: those asked for, else the question's own."""
        if self.rounds is not None:
            return self.rounds
        return min(QUICK, default) if self.quick else default

    def time_limit(self, default: float) -> float:
        """How long rounds may take."""
        return HURRY * default if self.quick else default

    def wants(self, name: str) -> bool:
        """Whether a case is one of those asked for: its name holds one of the words between commas."""
        return any(word.strip() in name for word in self.only.split(","))
