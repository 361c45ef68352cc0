"""The curves of `doxa_bench.scaling`: steps a second and peak memory against width, nets and samples, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from doxa.report.canvas import SLIM, draw_svg, format_tick
from doxa.report.palette import MUTED, SERIES, Style

HEIGHT, LETTERS = 236, 9.5  # points
LABELS = 0.30  # of the axis, to the right of the last point
FAR = 2.0  # times beyond what was measured, a proportion ends
MARKED = (100, 400, 1200, 4000)  # of the widths, or their numbers would touch
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """What stands on the upright axis."""

    name: str
    ours: Callable[[Row], float]
    plain: Callable[[Row], float]


SPEED = Measure("steps a second", lambda r: r["steps_per_second"], lambda r: r["plain_steps_per_second"])
MEMORY = Measure("peak memory, MB", lambda r: r["bytes"] / 1e6, lambda r: r["plain_bytes"] / 1e6)


@dataclass(frozen=True)
class Sweep:
    """What lies on the level axis, the curves drawn over it, and how either measure changes in proportion to it."""

    column: str
    name: str
    curves: Mapping[str, Mapping[str, Any]]  # by name, what the points of each have in common
    speed: tuple[str, Callable[[Row], float]]  # the name of the dotted line, and what it is in proportion to
    memory: tuple[str, Callable[[Row], float]]

    def rows(self, points: Sequence[Row], curve: str) -> list[Row]:
        common = {"nets": 1, "samples": 1, "noise": "shared"} | dict(self.curves[curve])
        common.pop(self.column, None)
        return sorted((p for p in points if common.items() <= p.items()), key=lambda p: p[self.column])

    def proportion(self, measure: Measure) -> tuple[str, Callable[[Row], float]]:
        return self.speed if measure is SPEED else self.memory


def _of_width(*widths: int) -> dict[str, dict[str, int]]:
    return {f"{w:,} units": {"width": w} for w in widths}


SWEEPS = (
    Sweep(
        "width",
        "width",
        {"shared": {}, "local": {"noise": "local"}},
        ("∝ 1/weights", lambda r: 1 / r["weights"]),
        ("∝ weights", lambda r: r["weights"]),
    ),
    # K nets that gain nothing by each other take K steps in the time of K.
    Sweep("nets", "nets, K", _of_width(100, 400), ("no gain", lambda r: 1.0), ("∝ K", lambda r: r["nets"])),
    Sweep(
        "samples",
        "samples, S",
        _of_width(400, 1200),
        ("∝ 1/S", lambda r: 1 / r["samples"]),
        ("∝ S", lambda r: r["samples"]),
    ),
)


@dataclass(frozen=True)
class CurveLine:
    """One line of a panel; the name stands at its right end."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dash: tuple[float, ...]
    marker: str = ""
    thick: float = 1.8


def panels(points: Sequence[Row], key: str) -> list[Markup]:
    """Steps a second beside memory, for each of the sweeps."""
    return [
        _panel(sweep, measure, points, f"{key}-{sweep.column}-{k}")
        for sweep in SWEEPS
        for k, measure in enumerate((SPEED, MEMORY))
    ]


def _panel(sweep: Sweep, measure: Measure, points: Sequence[Row], key: str) -> Markup:
    lines = list(_lines(sweep, measure, points))

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for line in lines:
            style = (0, line.dash) if line.dash else "-"
            axes.plot(line.x, line.y, color=line.colour, linestyle=style, marker=line.marker, linewidth=line.thick)
        _set_scales(axes, lines)
        _draw_names(axes, lines)

    ends = [f"{n.name} from {_format_value(n.y[0])} to {_format_value(n.y[-1])}" for n in lines if n.marker]
    label = f"{measure.name.capitalize()} against {sweep.name}: {'; '.join(ends)}."
    return draw_svg(draw, key=key, label=label, x=sweep.name, y=measure.name, width=SLIM, height=HEIGHT)


def _lines(sweep: Sweep, measure: Measure, points: Sequence[Row]) -> Iterator[CurveLine]:
    by_width = sweep.column == "width"
    for curve_index, name in enumerate(sweep.curves):
        rows = sweep.rows(points, name)
        if not rows:
            continue
        style: Style = SERIES[curve_index]
        x, first = [float(r[sweep.column]) for r in rows], measure.ours(rows[0])
        yield CurveLine(name, x, [measure.ours(r) for r in rows], style.colour, (), style.marker)
        if by_width and curve_index:
            continue  # one plain net and one proportion serve all noises
        colour = MUTED if by_width else style.colour
        yield CurveLine(
            "plain", x, _median_unless_varying([measure.plain(r) for r in rows], by_width), colour, (5, 2), thick=1.2
        )
        title, proportional_to = sweep.proportion(measure)
        measured = [f(r) for r in rows for f in (measure.ours, measure.plain)]
        grown = [first * proportional_to(r) / proportional_to(rows[0]) for r in rows]
        yield CurveLine(
            title, *_clip_line(x, grown, min(measured) / FAR, max(measured) * FAR), colour, (1, 2), thick=1.2
        )


def _clip_line(x: Sequence[float], y: Sequence[float], low: float, high: float) -> tuple[list[float], list[float]]:
    """A line as far as it keeps to these limits, so that no proportion flattens what was measured."""
    for k, value in enumerate(y):
        if not low <= value <= high:
            edge = low if value < low else high
            share = math.log(edge / y[k - 1]) / math.log(value / y[k - 1])
            return [*x[:k], x[k - 1] * (x[k] / x[k - 1]) ** share], [*y[:k], edge]
    return list(x), list(y)


def _median_unless_varying(values: list[float], varies: bool) -> list[float]:
    """The plain net is one and the same where the width is: its median over the points."""
    return values if varies else [sorted(values)[len(values) // 2]] * len(values)


def _set_scales(axes: Axes, lines: Sequence[CurveLine]) -> None:
    across = sorted({x for line in lines if line.marker for x in line.x})
    low, high = across[0], max(across[-1], 2 * across[0])
    axes.set_xlim(low * (low / high) ** 0.04, high * (high / low) ** (LABELS / (1 - LABELS)))
    few = [x for x in across if x in MARKED]
    axes.xaxis.set_major_locator(FixedLocator(few if len(across) > len(few) > 1 else across))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    along = [y for line in lines for y in line.y]
    low, high = min(along), max(along)
    axes.set_ylim(low / 1.3, high * 1.3)
    axes.yaxis.set_major_locator(LogLocator(10, (1.0,) if high > 100 * low else (1.0, 3.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_tick(y)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())


def _draw_names(axes: Axes, lines: Sequence[CurveLine]) -> None:
    """Each name at the end of its line, and none over another."""
    apart = LETTERS * 1.05 / (HEIGHT - 64)  # of the axis' height
    by_height = sorted(lines, key=lambda line: line.y[-1])
    heights = [float(axes.transAxes.inverted().transform(axes.transData.transform((1, n.y[-1])))[1]) for n in by_height]
    for line, height in zip(by_height, spread_apart(heights, apart), strict=True):
        right = float(axes.transAxes.inverted().transform(axes.transData.transform((line.x[-1], 1)))[0])
        axes.text(
            right + 0.025, height, line.name, color=line.colour, fontsize=LETTERS, va="center", transform=axes.transAxes
        )


def spread_apart(heights: Sequence[float], apart: float) -> list[float]:
    """Rising heights, moved as little as need be to lie at least so far apart and between 0 and 1."""
    groups: list[tuple[float, int]] = []  # middles, and how many names share each
    for height in heights:
        groups.append((height, 1))
        while True:
            middle, count = groups[-1]
            room = (count - 1) * apart / 2
            groups[-1] = min(max(middle, room), 1 - room), count
            if len(groups) < 2 or groups[-1][0] - groups[-2][0] >= (groups[-1][1] + groups[-2][1]) * apart / 2:
                break
            (a, m), (b, n) = groups[-2:]
            groups[-2:] = [((a * m + b * n) / (m + n), m + n)]
    return [middle + (k - (count - 1) / 2) * apart for middle, count in groups for k in range(count)]


def _format_value(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
