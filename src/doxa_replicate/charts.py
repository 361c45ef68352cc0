"""Charts as pieces of a page: SVG in its colours, a legend that wraps below, and the sentence that says it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from doxa.report.canvas import HEIGHT, SLIM, WIDTH, picture, tick
from doxa.report.figures.lines import numbers
from doxa.report.figures.panel import Panel, swatch
from doxa.report.palette import MUTED, VARIABLES, Style
from doxa_replicate import contours
from doxa_replicate.looks import MARKED, Looks, looks
from doxa_replicate.show import Area, Chart, Column, Line

LOW = 236  # points, of a slim chart
LIGHT, DEEP, SPREAD, SHADE = 0.22, 0.34, 0.2, 0.16  # of areas, those inside them, errors, and training data
SEEN = "range of the training data"
FEW = 2.2  # decades of a logarithmic axis, up to which 2 and 5 are marked too
STEPS = (1, 2, 2.5, 5, 10)  # between the numbers of an axis
POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def panel(chart: Chart, key: str, slim: bool = False) -> Panel:
    """A chart, drawn; `key` is unique on its page."""
    look = looks(chart)

    def draw(axes: Axes) -> None:
        _scales(axes, chart)
        if chart.contours is not None:
            contours.draw(axes, chart.contours)
        if chart.shaded is not None:
            axes.axvspan(*chart.shaded, color=MUTED, alpha=SHADE, linewidth=0, zorder=0)
        areas = zip(chart.areas, look.areas, _inner(chart, look), strict=True)
        for area, style, inner in sorted(areas, key=lambda found: _width(found[0]), reverse=True):
            _fill(axes, area.x, numbers(area.lower), numbers(area.upper), style, DEEP if inner else LIGHT)
        for dots, style in zip(chart.dots, look.dots, strict=True):
            size, alpha = (3.2, 0.6) if style.colour == MUTED else (5.5, 1.0)
            axes.plot(numbers(dots.x), numbers(dots.y), style.marker, color=style.colour, markersize=size, alpha=alpha)
        for line, style in zip(chart.lines, look.lines, strict=True):
            _line(axes, line, style)
        axes.set(xlim=chart.x_limits, ylim=chart.y_limits)

    width, height = (SLIM, LOW) if slim else (WIDTH, HEIGHT)
    label = f"{chart.title}. {chart.says}".strip()
    svg = picture(draw, key=key, label=label, x=chart.x, y=chart.y, width=width, height=height)
    return Panel(svg, chart.says, _legend(chart, look), chart.title)


def _line(axes: Axes, line: Line, style: Style) -> None:
    x, y = numbers(line.x), numbers(line.y)
    if line.error is not None:
        spread = [e if e == e else 0.0 for e in numbers(line.error)]
        if len(x) <= MARKED:
            axes.errorbar(x, y, spread, fmt="none", color=style.colour, elinewidth=1.2, capsize=2.5, zorder=2.5)
        else:
            low, high = ([b + sign * e for b, e in zip(y, spread, strict=True)] for sign in (-1, 1))
            _fill(axes, x, low, high, style, SPREAD)
    thick, alpha = (0.9, 0.6) if line.faint else (1.7, 1.0)
    axes.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markersize=4.5,
        linewidth=thick,
        alpha=alpha,
        zorder=2 if line.faint else 3,
    )


def _fill(axes: Axes, x: Column, low: Sequence[float], high: Sequence[float], style: Style, alpha: float) -> None:
    axes.fill_between(numbers(x), low, high, color=style.colour, alpha=alpha, linewidth=0, zorder=1)


def _width(area: Area) -> float:
    """How wide an area is on average, so that what lies inside another is drawn over it."""
    known = [b - a for a, b in zip(numbers(area.lower), numbers(area.upper), strict=True) if math.isfinite(b - a)]
    return sum(known) / len(known) if known else 0.0


def _inner(chart: Chart, look: Looks) -> list[bool]:
    """Whether each area has a wider one of its colour around it."""
    widest: dict[str, float] = {}
    for area, style in zip(chart.areas, look.areas, strict=True):
        widest[style.colour] = max(widest.get(style.colour, 0.0), _width(area))
    return [_width(area) < widest[style.colour] for area, style in zip(chart.areas, look.areas, strict=True)]


def _scales(axes: Axes, chart: Chart) -> None:
    points = [(part.x, part.y) for part in chart.lines] + [(part.x, part.y) for part in chart.dots]
    points += [(area.x, ends) for area in chart.areas for ends in (area.lower, area.upper)]
    if chart.contours is not None:
        points.append((chart.contours.x, chart.contours.y))
    across = [v for column, _ in points for v in column]
    along = [v for _, column in points for v in column]
    axes.margins(x=0.03 if chart.log_x or len(set(across)) <= MARKED else 0)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
    if chart.log_x:
        axes.set_xscale("log")
        _logarithmic(axes.xaxis, chart.x_limits or across)
    if chart.log_y:
        axes.set_yscale("log")
        _logarithmic(axes.yaxis, chart.y_limits or along)


def _logarithmic(axis: Axis, values: Column) -> None:
    known = [v for v in values if v is not None and v > 0]
    decades = math.log10(max(known) / min(known)) if known else 1.0
    axis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0) if decades < FEW else (1.0,), numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
    axis.set_minor_formatter(NullFormatter())


def _power(value: float) -> str:
    """A number on a logarithmic axis: as it is, or as a power of ten where it would have many noughts."""
    power = math.log10(value) if value > 0 else 0.0
    if abs(power - round(power)) < 1e-9 and not -4 < power < 6:
        return "10" + str(round(power)).translate(POWERS)
    return tick(value)


def _legend(chart: Chart, look: Looks) -> list[tuple[Markup, str, str]]:
    """The key of each part beside its name."""
    lines = zip(chart.lines, look.lines, strict=True)
    keys = [(style.key, line.name, "") for line, style in lines if not line.faint]
    for area, style, inner in zip(chart.areas, look.areas, _inner(chart, look), strict=True):
        keys.append((swatch("deep" if inner else "area", VARIABLES[style.colour]), area.name, ""))
    for dots, style in zip(chart.dots, look.dots, strict=True):
        alone = Style(style.colour, (0, 99), style.marker, style.outline)  # a marker on no line
        keys.append((swatch("dots", "--muted") if style.colour == MUTED else alone.key, dots.name, ""))
    if chart.contours is not None:
        keys.append(contours.key(chart.contours))
    if chart.shaded is not None:
        keys.append((swatch("area", "--muted"), SEEN, ""))
    return list(dict.fromkeys(keys))
