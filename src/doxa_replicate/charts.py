"""Charts as pieces of a page: SVG in its colours, a legend that wraps below, and the sentence that says it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from doxa.report.canvas import HEIGHT, SLIM, WIDTH, draw_svg, format_tick
from doxa.report.figures.lines import nan_for_none
from doxa.report.figures.panel import Panel, legend_swatch
from doxa.report.palette import MUTED, VARIABLES, Style
from doxa_replicate import contours
from doxa_replicate.looks import MAX_MARKED_POINTS, ChartStyles, chart_styles
from doxa_replicate.show import Area, Chart, ChartLine, Column

SLIM_HEIGHT = 236  # points, of a slim chart
LIGHT, DEEP, SPREAD, SHADE = 0.22, 0.34, 0.2, 0.16  # of areas, those inside them, errors, and training data
TRAINING_RANGE_LABEL = "range of the training data"
FEW_DECADES = 2.2  # decades of a logarithmic axis, up to which 2 and 5 are marked too
TICK_STEPS = (1, 2, 2.5, 5, 10)  # between the numbers of an axis
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def panel(chart: Chart, key: str, slim: bool = False) -> Panel:
    """A chart, drawn; `key` is unique on its page."""
    styles = chart_styles(chart)

    def draw(axes: Axes) -> None:
        _set_scales(axes, chart)
        if chart.contours is not None:
            contours.draw_contours(axes, chart.contours)
        if chart.shaded is not None:
            axes.axvspan(*chart.shaded, color=MUTED, alpha=SHADE, linewidth=0, zorder=0)
        areas = zip(chart.areas, styles.areas, _has_wider_around(chart, styles), strict=True)
        for area, style, inner in sorted(areas, key=lambda area_item: _mean_width(area_item[0]), reverse=True):
            _fill_between(
                axes, area.x, nan_for_none(area.lower), nan_for_none(area.upper), style, DEEP if inner else LIGHT
            )
        for dots, style in zip(chart.dots, styles.dots, strict=True):
            size, alpha = (3.2, 0.6) if style.colour == MUTED else (5.5, 1.0)
            axes.plot(
                nan_for_none(dots.x),
                nan_for_none(dots.y),
                style.marker,
                color=style.colour,
                markersize=size,
                alpha=alpha,
            )
        for line, style in zip(chart.lines, styles.lines, strict=True):
            _draw_line(axes, line, style)
        axes.set(xlim=chart.x_limits, ylim=chart.y_limits)

    width, height = (SLIM, SLIM_HEIGHT) if slim else (WIDTH, HEIGHT)
    label = f"{chart.title}. {chart.caption}".strip()
    svg = draw_svg(draw, key=key, label=label, x=chart.x, y=chart.y, width=width, height=height)
    return Panel(svg, chart.caption, _legend(chart, styles), chart.title)


def _draw_line(axes: Axes, line: ChartLine, style: Style) -> None:
    x, y = nan_for_none(line.x), nan_for_none(line.y)
    if line.error is not None:
        errors = [e if e == e else 0.0 for e in nan_for_none(line.error)]
        if len(x) <= MAX_MARKED_POINTS:
            axes.errorbar(x, y, errors, fmt="none", color=style.colour, elinewidth=1.2, capsize=2.5, zorder=2.5)
        else:
            low, high = ([b + sign * e for b, e in zip(y, errors, strict=True)] for sign in (-1, 1))
            _fill_between(axes, x, low, high, style, SPREAD)
    linewidth, alpha = (0.9, 0.6) if line.faint else (1.7, 1.0)
    axes.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markersize=4.5,
        linewidth=linewidth,
        alpha=alpha,
        zorder=2 if line.faint else 3,
    )


def _fill_between(
    axes: Axes, x: Column, low: Sequence[float], high: Sequence[float], style: Style, alpha: float
) -> None:
    axes.fill_between(nan_for_none(x), low, high, color=style.colour, alpha=alpha, linewidth=0, zorder=1)


def _mean_width(area: Area) -> float:
    """How wide an area is on average, so that what lies inside another is drawn over it."""
    widths = [
        b - a for a, b in zip(nan_for_none(area.lower), nan_for_none(area.upper), strict=True) if math.isfinite(b - a)
    ]
    return sum(widths) / len(widths) if widths else 0.0


def _has_wider_around(chart: Chart, styles: ChartStyles) -> list[bool]:
    """Whether each area has a wider one of its colour around it."""
    widest: dict[str, float] = {}
    for area, style in zip(chart.areas, styles.areas, strict=True):
        widest[style.colour] = max(widest.get(style.colour, 0.0), _mean_width(area))
    return [_mean_width(area) < widest[style.colour] for area, style in zip(chart.areas, styles.areas, strict=True)]


def _set_scales(axes: Axes, chart: Chart) -> None:
    points = [(part.x, part.y) for part in chart.lines] + [(part.x, part.y) for part in chart.dots]
    points += [(area.x, edge) for area in chart.areas for edge in (area.lower, area.upper)]
    if chart.contours is not None:
        points.append((chart.contours.x, chart.contours.y))
    x_values = [v for column, _ in points for v in column]
    y_values = [v for _, column in points for v in column]
    axes.margins(x=0.03 if chart.log_x or len(set(x_values)) <= MAX_MARKED_POINTS else 0)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=TICK_STEPS))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
    if chart.log_x:
        axes.set_xscale("log")
        _set_log_axis(axes.xaxis, chart.x_limits or x_values)
    if chart.log_y:
        axes.set_yscale("log")
        _set_log_axis(axes.yaxis, chart.y_limits or y_values)


def _set_log_axis(axis: Axis, values: Column) -> None:
    positive = [v for v in values if v is not None and v > 0]
    decades = math.log10(max(positive) / min(positive)) if positive else 1.0
    axis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0) if decades < FEW_DECADES else (1.0,), numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _format_log_tick(value)))
    axis.set_minor_formatter(NullFormatter())


def _format_log_tick(value: float) -> str:
    """A number on a logarithmic axis: as it is, or as a power of ten where it would have many noughts."""
    power = math.log10(value) if value > 0 else 0.0
    if abs(power - round(power)) < 1e-9 and not -4 < power < 6:
        return "10" + str(round(power)).translate(SUPERSCRIPTS)
    return format_tick(value)


def _legend(chart: Chart, styles: ChartStyles) -> list[tuple[Markup, str, str]]:
    """The key of each part beside its name."""
    lines = zip(chart.lines, styles.lines, strict=True)
    entries = [(style.key, line.name, "") for line, style in lines if not line.faint]
    for area, style, inner in zip(chart.areas, styles.areas, _has_wider_around(chart, styles), strict=True):
        entries.append((legend_swatch("deep" if inner else "area", VARIABLES[style.colour]), area.name, ""))
    for dots, style in zip(chart.dots, styles.dots, strict=True):
        marker_style = Style(style.colour, (0, 99), style.marker, style.outline)  # a marker on no line
        entries.append((legend_swatch("dots", "--muted") if style.colour == MUTED else marker_style.key, dots.name, ""))
    if chart.contours is not None:
        entries.append(contours.legend_entry(chart.contours))
    if chart.shaded is not None:
        entries.append((legend_swatch("area", "--muted"), TRAINING_RANGE_LABEL, ""))
    return list(dict.fromkeys(entries))
