"""What several figures draw alike: a run's line with its errors, and a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from doxa.report.figures.drawable import drawable, some
from doxa.report.palette import MUTED
from doxa.report.runs import ReportedRun


def draw_line(
    axes: Axes, run: ReportedRun, x: Sequence[Any], y: Sequence[Any], errors: Sequence[Any] | None = None
) -> None:
    """A run's points, joined, in its style; what is None is left out. Errors as whiskers of one standard error."""
    x, y = drawable(x), drawable(y)
    indices = [k for k, (a, b) in enumerate(zip(x, y, strict=True)) if not math.isnan(a + b)]
    indices = [indices[k] for k in some(len(indices))]
    x_known, y_known = [x[k] for k in indices], [y[k] for k in indices]
    style = run.style
    axes.plot(x_known, y_known, color=style.colour, linestyle=style.line, marker=style.marker, zorder=3)
    if errors is not None:
        sizes = [0.0 if math.isnan(size) else max(0.0, size) for size in drawable([errors[k] for k in indices])]
        axes.errorbar(x_known, y_known, sizes, fmt="none", color=style.colour, elinewidth=1.2, capsize=2.5, zorder=2)


def draw_diagonal(axes: Axes) -> None:
    """Where what was said is what came."""
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=1.0, linestyle=(0, (3, 3)), zorder=1)


def nan_for_none(values: Sequence[Any]) -> list[float]:
    """What matplotlib leaves out where a value is not known."""
    return [math.nan if v is None else v for v in values]


def to_percent(values: Sequence[Any]) -> list[Any]:
    return [None if v is None else 100 * v for v in values]


def join_sentences(sentences: Sequence[str]) -> str:
    return "; ".join(sentences) + "."
