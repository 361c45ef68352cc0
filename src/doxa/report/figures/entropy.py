"""Entropy in and out of distribution: is it more doubtful of what it has never seen?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes

from doxa.report.canvas import SLIM, draw_svg
from doxa.report.figures.drawable import apart, clipped, percentages, some
from doxa.report.figures.panel import Panel, legend_swatch
from doxa.report.palette import INK, VARIABLES
from doxa.report.runs import ReportedRun

SECTION = "entropy"
TITLE = "Does it doubt what it has never seen?"
LEAD = (
    "The share of rows that are less doubtful than a given entropy, in nats. The further unfamiliar rows lie to the "
    "right of familiar ones, the better the run tells what it knows from what it does not."
)


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """A panel for each run, all with the same limits; only where unfamiliar inputs were asked about."""
    runs_with_both = [run for run in runs if run.has_section(SECTION) and run.result[SECTION].get("outside")]
    edges = clipped([edge for run in runs_with_both for edge in run.result[SECTION]["edges"]])
    limits = apart(min(edges), max(edges)) if edges else (0.0, 1.0)
    return [_panel(run, f"{key}-{run.series_index}", limits) for run in runs_with_both]


def _panel(run: ReportedRun, key: str, limits: tuple[float, float]) -> Panel:
    def draw(axes: Axes) -> None:
        edges, colour = [limits[0], *clipped(run.result[SECTION]["edges"]), limits[1]], run.style.colour
        inside, outside = (
            [0.0, 0.0, *accumulate(_bin_percentages(run, rows)), 100.0] for rows in ("inside", "outside")
        )
        edges, inside, outside = ([values[k] for k in some(len(edges))] for values in (edges, inside, outside))
        axes.fill_between(edges, outside, inside, color=colour, alpha=0.16, linewidth=0)
        axes.plot(edges, inside, color=colour)
        axes.plot(edges, outside, color=INK, linestyle=(0, (5, 2)))
        axes.set(xlim=limits, ylim=(0, 104))

    inside, outside = (_median(run, rows) for rows in ("inside", "outside"))
    caption = f"Half of the familiar rows lie below {inside} nats, half of the unfamiliar below {outside}."
    keys = [
        (legend_swatch("line", VARIABLES[run.style.colour]), "familiar", ""),
        (legend_swatch("line", "--ink", "5 2"), "unfamiliar", ""),
    ]
    label = f"Cumulative distribution of the entropies of {run.name_in_sentence}. {caption}"
    svg = draw_svg(draw, key=key, label=label, x="entropy, nats", y="rows, %", width=SLIM, height=220)
    return Panel(svg, caption, keys, title=run.name)


def _bin_percentages(run: ReportedRun, rows: str) -> list[float]:
    return percentages(run.result[SECTION].get(rows, []))


def _median(run: ReportedRun, rows: str) -> str:
    """The middle of the distribution, to within its bin."""
    edges: list[Any] = run.result[SECTION]["edges"]
    total = 0.0
    for k, share in enumerate(_bin_percentages(run, rows)):
        if share and total + share >= 50:
            return f"{edges[k] + (edges[k + 1] - edges[k]) * (50 - total) / share:.2g}".replace("-", "−")
        total += share
    return "–"
