"""Numbers as they can be drawn: of a size that pictures hold, and no more of them than can be seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

LARGEST, SMALLEST = 1e30, 1e-30  # beyond which a number is left out, or is 0
MOST_POINTS = 2_000  # of one line
MARGIN = 0.06  # of the range, left free above and below
OUTSIDE = 1_000  # ranges of the axis, further out than which nothing is drawn
NARROW = 1e-9  # of the numbers' size: a range that ticks cannot tell apart


def drawable(values: Sequence[Any]) -> list[float]:
    """Numbers of a size that can be drawn; NaN, which is left out, for the others and where a value is not known."""
    return [_drawable(v) for v in values]


def _drawable(value: float | None) -> float:
    if value is None or not abs(value) <= LARGEST:
        return math.nan
    return value if abs(value) >= SMALLEST else 0.0


def clipped(values: Sequence[float]) -> list[float]:
    """Numbers, those of a size beyond all drawing at its bounds."""
    return [0.0 if abs(v) < SMALLEST else min(LARGEST, max(-LARGEST, v)) for v in values]


def near(values: Sequence[float], limits: tuple[float, float]) -> list[float]:
    """Numbers, those far outside of an axis not quite so far: a picture has no room for them anyway."""
    low, high = limits
    reach = OUTSIDE * (high - low)
    return [v if math.isnan(v) else min(high + reach, max(low - reach, v)) for v in values]


def some(length: int, most: int = MOST_POINTS) -> list[int]:
    """All indices, or of many the first, the last and evenly spaced ones between them."""
    return list(range(length)) if length <= most else [round(k * (length - 1) / (most - 1)) for k in range(most)]


def apart(low: float, high: float) -> tuple[float, float]:
    """Limits of an axis: the two numbers in order, with room around them where they are as good as the same."""
    low, high = min(low, high), max(low, high)
    size = max(abs(low), abs(high))
    if high - low > NARROW * size:
        return low, high
    margin = MARGIN * size or 1.0
    return low - margin, high + margin


def axis_limits(values: Sequence[Any], floor: float | None = None) -> tuple[float, float]:
    """Limits around all known values, with a little room; from `floor` up where one is given."""
    known = [v for v in drawable(values) if not math.isnan(v)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    low = low if floor is None else min(low, floor)
    margin = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
    return apart(low if floor is not None and low == floor else low - margin, high + margin)


def percentages(counts: Sequence[Any]) -> list[float]:
    """What each count is of all of them, in percent; zeros where there are none."""
    total = sum(count or 0 for count in counts) or 1
    return [100 * (count or 0) / total for count in counts]
