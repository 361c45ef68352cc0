"""The one rule for claims: numbers over seeds, the 95 % interval of their mean, and the border it must lie beyond."""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doxa.bandits.comparison import student_quantile

PASS, FAIL, OPEN = "PASS", "FAIL", "OPEN"
LEVEL = 0.95
MANY_SEEDS = 1000  # beyond which no number of seeds is told


@dataclass(frozen=True)
class Evidence:
    """A number for each seed, such as a paired difference, and where its mean must lie: between two borders.

    It holds where Student's interval lies wholly inside, fails where it lies wholly outside, and is open elsewhere:
    mean ± t_{n−1} · s/√n. Student (1908), The probable error of a mean.
    """

    values: Sequence[float | None]
    above: float = -math.inf
    below: float = math.inf

    @functools.cached_property
    def _finite(self) -> list[float]:
        return [float(v) for v in self.values if v is not None and math.isfinite(v)]

    @property
    def mean(self) -> float:
        return float(np.mean(self._finite)) if len(self._finite) == len(self.values) > 0 else math.inf

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds; None where one seed, or a number that is not finite, tells none."""
        return float(np.std(self._finite, ddof=1)) if len(self._finite) == len(self.values) > 1 else None

    @property
    def interval(self) -> tuple[float, float]:
        if self.deviation is None:
            return -math.inf, math.inf
        half_width = self._half_width(len(self.values))
        return self.mean - half_width, self.mean + half_width

    @property
    def verdict(self) -> str:
        low, high = self.interval
        if self.above < low and high < self.below:
            return PASS
        return FAIL if high <= self.above or low >= self.below else OPEN

    @property
    def seeds_needed(self) -> int | None:
        """How many seeds would decide it if mean and deviation stayed; None where they cannot tell, or too many."""
        if self.verdict != OPEN or self.deviation is None:
            return None
        distance = min(abs(self.mean - border) for border in (self.above, self.below))
        counts = range(len(self.values), MANY_SEEDS + 1)
        # Half of an interval only ever shrinks with the count.
        place = bisect_left(counts, True, key=lambda count: self._half_width(count) < distance)
        return counts[place] if place < len(counts) else None

    def _half_width(self, count: int) -> float:
        """Half of the interval that so many seeds of this deviation would have."""
        assert self.deviation is not None
        return _quantile(count) * self.deviation / math.sqrt(count)

    def as_dict(self) -> dict[str, Any]:
        low, high = self.interval
        borders = {"above": self.above, "below": self.below}
        return {
            "mean": self.mean if math.isfinite(self.mean) else None,
            "low": low if math.isfinite(low) else None,
            "high": high if math.isfinite(high) else None,
            **{name: border for name, border in borders.items() if math.isfinite(border)},
            "each": list(self.values),
            "verdict": self.verdict,
            "seeds_needed": self.seeds_needed,
        }


def combined(verdicts: Iterable[str]) -> str:
    """What several parts of a claim come to: it holds where all do, and fails where one does."""
    found = set(verdicts)
    return FAIL if FAIL in found else OPEN if OPEN in found or not found else PASS


def unanimous(verdicts: Iterable[str]) -> str:
    """What a claim comes to under circumstances that are not known: it holds, or fails, where it does so in all."""
    found = set(verdicts)
    return found.pop() if len(found) == 1 else OPEN


def paired(
    a: Sequence[float | None], b: Sequence[float | None], *, above: float = -math.inf, below: float = math.inf
) -> Evidence:
    """a − b, seed by seed, and where its mean must lie."""
    differences = [None if x is None or y is None else x - y for x, y in zip(a, b, strict=True)]
    return Evidence(differences, above, below)


def best_of(values: Mapping[str, Sequence[float | None]], name: str, highest: bool = True) -> dict[str, Evidence]:
    """That one of several is the highest, or the lowest: its difference from each of the others."""
    border = {"above": 0.0} if highest else {"below": 0.0}
    return {
        f"{name} less {other}": paired(values[name], numbers, **border)
        for other, numbers in values.items()
        if other != name
    }


@functools.cache
def _quantile(count: int) -> float:
    return student_quantile((1 + LEVEL) / 2, count - 1)
