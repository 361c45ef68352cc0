"""The regression band: what it expects, and how far it would be surprised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from doxa.report.canvas import picture
from doxa.report.figures.lines import numbers, span
from doxa.report.figures.panel import Panel, swatch
from doxa.report.palette import INK, MUTED, VARIABLES
from doxa.report.runs import Run

SECTION = "band"
TITLE = "Is it unsure where it has seen nothing?"
LEAD = (
    "The mean and the central 90 % of what each run expects. Amid its training data a band should be as wide as the "
    "noise; away from them it should open."
)
REACH = 0.5  # how far beyond the data a panel reaches, in ranges of the data


def panels(runs: Sequence[Run], key: str) -> list[Panel]:
    """A panel for each run, all with the same limits."""
    having = [run for run in runs if run.has(SECTION)]
    limits = _limits(having)
    return [_panel(run, f"{key}-{run.place}", limits) for run in having]


def _panel(run: Run, key: str, limits: tuple[float, float]) -> Panel:
    band = run.result[SECTION]

    def draw(axes: Axes) -> None:
        x, colour = band["x"], run.style.colour
        areas = [("lower", "upper", 0.24), ("aleatoric_lower", "aleatoric_upper", 0.34)]
        for lower, upper, alpha in areas:
            if lower in band:
                axes.fill_between(x, numbers(band[lower]), numbers(band[upper]), color=colour, alpha=alpha, linewidth=0)
        if band.get("truth_x"):
            axes.plot(band["truth_x"], numbers(band["truth_y"]), color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
        if band.get("train_x"):
            axes.plot(band["train_x"], numbers(band["train_y"]), ".", color=MUTED, markersize=2.6, alpha=0.7)
        axes.plot(x, numbers(band["mean"]), color=colour, linewidth=2.2)
        axes.set(xlim=(min(x), max(x)), ylim=limits)

    says = _says(run)
    label = f"Regression band of {run.said}. {says}"
    svg = picture(draw, key=key, label=label, x="x", y="y")
    return Panel(svg, says, _legend(run), title=run.name)


def _limits(runs: Sequence[Run]) -> tuple[float, float]:
    """All that is drawn, but a band that opens very far leaves the picture."""
    bands = [run.result[SECTION] for run in runs]
    solid = [v for band in bands for c in ("train_y", "truth_y") for v in band.get(c, [])]
    solid = solid or [v for band in bands for v in band["mean"]]
    low, high = span(solid)
    drawn = [v for band in bands for c in ("lower", "upper") for v in band[c] if v is not None]
    reach = REACH * (high - low)
    inner, outer = span(drawn)
    return max(min(inner, low), low - reach), min(max(outer, high), high + reach)


def _legend(run: Run) -> list[Any]:
    band, colour = run.result[SECTION], VARIABLES[run.style.colour]
    keys = [(swatch("line", colour), "mean", ""), (swatch("area", colour), "90 % of what it expects", "")]
    if "aleatoric_lower" in band:
        keys.append((swatch("deep", colour), "of that, noise alone", ""))
    if band.get("train_x"):
        keys.append((swatch("dots", "--muted"), "training data", ""))
    if band.get("truth_x"):
        keys.append((swatch("line", "--ink", "4 2"), "truth", ""))
    return keys


def _says(run: Run) -> str:
    band = run.result[SECTION]
    widths = [
        (x, upper - lower)
        for x, lower, upper in zip(band["x"], band["lower"], band["upper"], strict=True)
        if lower is not None and upper is not None
    ]
    seen = band.get("train_x") or [band["x"][0], band["x"][-1]]
    amid = [w for x, w in widths if min(seen) <= x <= max(seen)]
    away = [w for x, w in widths if not min(seen) <= x <= max(seen)]
    if not amid:
        return "The band has no part amid the training data."
    inside = sum(amid) / len(amid)
    if not away:
        return f"The band is {inside:.2g} wide on average."
    outside = sum(away) / len(away)
    times = f" ({outside / inside:.2g} times)" if inside > 0 else ""
    return f"Amid its training data the band is {inside:.2g} wide on average, away from them {outside:.2g}{times}."
