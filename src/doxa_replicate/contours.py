"""Heights over a plane: bands of one colour, with more of it the higher they are, and lines between them."""

from __future__ import annotations

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from doxa.report.canvas import format_tick
from doxa.report.figures.lines import nan_for_none
from doxa.report.figures.panel import legend_swatch
from doxa.report.palette import INK, VARIABLES
from doxa_replicate.show import Contours

MAX_OPACITY = 0.32  # of the highest band
LINE_WIDTH, LINE_OPACITY = 0.5, 0.35  # of lines between bands


def draw_contours(axes: Axes, surface: Contours) -> None:
    height = [nan_for_none(row) for row in surface.height]
    bands = len(surface.levels) - 1
    colours = [(*to_rgb(INK), MAX_OPACITY * k / max(1, bands - 1)) for k in range(bands)]
    axes.grid(False)  # lines of equal height are lines enough
    axes.contourf(
        nan_for_none(surface.x), nan_for_none(surface.y), height, levels=surface.levels, colors=colours, zorder=0
    )
    axes.contour(
        nan_for_none(surface.x),
        nan_for_none(surface.y),
        height,
        levels=surface.levels,
        colors=INK,
        alpha=LINE_OPACITY,
        linewidths=LINE_WIDTH,
        linestyles="solid",
        zorder=0.5,
    )


def legend_entry(surface: Contours) -> tuple[Markup, str, str]:
    """The key of bands beside their name and between which heights they lie."""
    return (
        legend_swatch("area", VARIABLES[INK]),
        f"{surface.name}, from {format_tick(surface.levels[0])} to {format_tick(surface.levels[-1])}",
        "",
    )
