"""What several figures draw alike: a run's line with its errors, a diagonal, and limits that all panels share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from doxa.report.palette import MUTED
from doxa.report.runs import ReportedRun

MARGIN = 0.06  # of the range, left free above and below


def draw_line(
    axes: Axes, run: ReportedRun, x: Sequence[Any], y: Sequence[Any], errors: Sequence[Any] | None = None
) -> None:
    """A run's points, joined, in its style; what is None is left out. Errors as whiskers of one standard error."""
    indices = [k for k, (a, b) in enumerate(zip(x, y, strict=True)) if a is not None and b is not None]
    x_known, y_known = [x[k] for k in indices], [y[k] for k in indices]
    style = run.style
    axes.plot(x_known, y_known, color=style.colour, linestyle=style.line, marker=style.marker, zorder=3)
    if errors is not None:
        sizes = [errors[k] or 0.0 for k in indices]
        axes.errorbar(x_known, y_known, sizes, fmt="none", color=style.colour, elinewidth=1.2, capsize=2.5, zorder=2)


def draw_diagonal(axes: Axes) -> None:
    """Where what was said is what came."""
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=1.0, linestyle=(0, (3, 3)), zorder=1)


def axis_limits(values: Sequence[Any], floor: float | None = None) -> tuple[float, float]:
    """Limits around all known values, with a little room; from `floor` up where one is given."""
    values_known = [v for v in values if v is not None]
    low, high = (min(values_known), max(values_known)) if values_known else (0.0, 1.0)
    low = low if floor is None else min(low, floor)
    margin = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
    return (low if floor is not None and low == floor else low - margin), high + margin


def nan_for_none(values: Sequence[Any]) -> list[float]:
    """What matplotlib leaves out where a value is not known."""
    return [math.nan if v is None else v for v in values]


def to_percent(values: Sequence[Any]) -> list[Any]:
    return [None if v is None else 100 * v for v in values]


def join_sentences(sentences: Sequence[str]) -> str:
    return "; ".join(sentences) + "."
