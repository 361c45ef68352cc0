"""The regression band: what it expects, and how far it would be surprised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from doxa.report.canvas import draw_svg
from doxa.report.figures.drawable import apart, axis_limits, clipped, drawable, near, some
from doxa.report.figures.panel import Panel, legend_swatch
from doxa.report.palette import INK, MUTED, VARIABLES
from doxa.report.runs import ReportedRun

SECTION = "band"
TITLE = "Is it unsure where it has seen nothing?"
LEAD = (
    "The mean and the central 90 % of what each run expects. Amid its training data a band should be as wide as the "
    "noise; away from them it should open."
)
REACH = 0.5  # how far beyond the data a panel reaches, in ranges of the data

# Of the truth and of the training data.
STYLES: dict[str, dict[str, Any]] = {
    "truth": {"color": INK, "linewidth": 1.2, "linestyle": (0, (4, 2))},
    "train": {"color": MUTED, "linestyle": "none", "marker": ".", "markersize": 2.6, "alpha": 0.7},
}


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """A panel for each run, all with the same limits."""
    runs_with_band = [run for run in runs if run.has_section(SECTION)]
    limits = _limits(runs_with_band)
    return [_panel(run, f"{key}-{run.series_index}", limits) for run in runs_with_band]


def _panel(run: ReportedRun, key: str, limits: tuple[float, float]) -> Panel:
    band = run.result[SECTION]

    def draw(axes: Axes) -> None:
        def column(name: str, points: Sequence[int]) -> list[float]:
            values = band[name]
            return near(drawable([values[k] for k in points]), limits)

        def places(name: str) -> list[int]:
            return some(len(band[name]))

        points, colour = places("x"), run.style.colour
        x = clipped([band["x"][k] for k in points])
        areas = [("lower", "upper", 0.24), ("aleatoric_lower", "aleatoric_upper", 0.34)]
        for lower, upper, alpha in areas:
            if lower in band and upper in band:
                edges = column(lower, points), column(upper, points)
                axes.fill_between(x, *edges, color=colour, alpha=alpha, linewidth=0)
        x_limits = apart(min(x), max(x))
        for name, style in STYLES.items():
            if band.get(f"{name}_x"):
                some_points = places(f"{name}_x")
                some_x = near(clipped([band[f"{name}_x"][k] for k in some_points]), x_limits)
                axes.plot(some_x, column(f"{name}_y", some_points), **style)
        axes.plot(x, column("mean", points), color=colour, linewidth=2.2)
        axes.set(xlim=x_limits, ylim=limits)

    caption = _caption(run)
    label = f"Regression band of {run.name_in_sentence}. {caption}"
    svg = draw_svg(draw, key=key, label=label, x="x", y="y")
    return Panel(svg, caption, _legend(run), title=run.name)


def _limits(runs: Sequence[ReportedRun]) -> tuple[float, float]:
    """All that is drawn, but a band that opens very far leaves the picture."""
    bands = [run.result[SECTION] for run in runs]
    data_values = [v for band in bands for c in ("train_y", "truth_y") for v in band.get(c, [])]
    data_values = data_values or [v for band in bands for v in band["mean"]]
    low, high = axis_limits(data_values)
    band_edges = [v for band in bands for c in ("lower", "upper") for v in band[c] if v is not None]
    reach = REACH * (high - low)
    lowest_edge, highest_edge = axis_limits(band_edges)
    return apart(max(min(lowest_edge, low), low - reach), min(max(highest_edge, high), high + reach))


def _legend(run: ReportedRun) -> list[Any]:
    band, colour = run.result[SECTION], VARIABLES[run.style.colour]
    keys = [(legend_swatch("line", colour), "mean", ""), (legend_swatch("area", colour), "90 % of what it expects", "")]
    if "aleatoric_lower" in band and "aleatoric_upper" in band:
        keys.append((legend_swatch("deep", colour), "of that, noise alone", ""))
    if band.get("train_x"):
        keys.append((legend_swatch("dots", "--muted"), "training data", ""))
    if band.get("truth_x"):
        keys.append((legend_swatch("line", "--ink", "4 2"), "truth", ""))
    return keys


def _caption(run: ReportedRun) -> str:
    band = run.result[SECTION]
    widths = [
        (x, upper - lower)
        for x, lower, upper in zip(band["x"], band["lower"], band["upper"], strict=True)
        if lower is not None and upper is not None
    ]
    train_x = band.get("train_x") or [band["x"][0], band["x"][-1]]
    first, last = min(train_x), max(train_x)
    widths_inside = [w for x, w in widths if first <= x <= last]
    widths_outside = [w for x, w in widths if not first <= x <= last]
    if not widths_inside:
        return "The band has no part amid the training data."
    inside = sum(widths_inside) / len(widths_inside)
    if not all(map(math.isfinite, (sum(widths_inside), sum(widths_outside)))):
        return "The band is wider than can be told."
    if not widths_outside:
        return f"The band is {inside:.2g} wide on average."
    outside = sum(widths_outside) / len(widths_outside)
    times = f" ({outside / inside:.2g} times)" if inside > 0 else ""
    return f"Amid its training data the band is {inside:.2g} wide on average, away from them {outside:.2g}{times}."
