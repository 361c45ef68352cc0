"""Heights over a plane: bands of one colour, with more of it the higher they are, and lines between them."""

from __future__ import annotations

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from doxa.report.canvas import tick
from doxa.report.figures.lines import numbers
from doxa.report.figures.panel import swatch
from doxa.report.palette import INK, VARIABLES
from doxa_replicate.show import Contours

DENSE = 0.32  # of the highest band
THIN, FADED = 0.5, 0.35  # of lines between bands


def draw(axes: Axes, of: Contours) -> None:
    height = [numbers(row) for row in of.height]
    bands = len(of.levels) - 1
    colours = [(*to_rgb(INK), DENSE * k / max(1, bands - 1)) for k in range(bands)]
    axes.grid(False)  # lines of equal height are lines enough
    axes.contourf(numbers(of.x), numbers(of.y), height, levels=of.levels, colors=colours, zorder=0)
    axes.contour(
        numbers(of.x),
        numbers(of.y),
        height,
        levels=of.levels,
        colors=INK,
        alpha=FADED,
        linewidths=THIN,
        linestyles="solid",
        zorder=0.5,
    )


def key(of: Contours) -> tuple[Markup, str, str]:
    """The key of bands beside their name and between which heights they lie."""
    return swatch("area", VARIABLES[INK]), f"{of.name}, from {tick(of.levels[0])} to {tick(of.levels[-1])}", ""
