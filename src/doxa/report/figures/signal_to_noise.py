"""The signal-to-noise ratios of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes

from doxa.report.canvas import picture
from doxa.report.figures.lines import joined
from doxa.report.figures.panel import Panel, legend
from doxa.report.numbers import share
from doxa.report.palette import MUTED
from doxa.report.runs import Run, batches

SECTION = "signal_to_noise"
TITLE = "Which weights carry signal?"
LEAD = (
    "Every weight by |mean| / scale, in decibels; for several nets, the root mean square of theirs. Left of 0 dB a "
    "weight is mostly noise, and pruning takes it first; weights beyond the ends of the scale are counted at its ends."
)


def panels(runs: Sequence[Run], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart, all with the same limits."""
    top = 1.06 * max((part for run in runs if run.has(SECTION) for part in _shares(run)), default=1.0)
    return [_panel(some, f"{key}-{k}", top) for k, some in enumerate(batches(runs, SECTION))]


def _panel(runs: Sequence[Run], key: str, top: float) -> Panel:
    def draw(axes: Axes) -> None:
        axes.axvline(0, color=MUTED, linewidth=1.0, linestyle=(0, (3, 3)))
        for run in runs:
            edges, shares = run.result[SECTION]["edges"], _shares(run)
            axes.stairs(shares, edges, fill=True, color=run.style.colour, alpha=0.3, linewidth=0)
            middles = [(a + b) / 2 for a, b in pairwise(edges)]
            axes.plot(middles, shares, color=run.style.colour, linestyle=run.style.line, linewidth=1.4)
        axes.set(xlim=_filled(runs), ylim=(0, top))

    says = joined([_says(run) for run in runs])
    label = f"Histogram of signal-to-noise ratios. {says}"
    svg = picture(draw, key=key, label=label, x="signal-to-noise, dB", y="weights, %")
    return Panel(svg, says, legend(runs))


def _shares(run: Run) -> list[float]:
    counts = [count or 0 for count in run.result[SECTION]["count"]]
    return [100 * count / (sum(counts) or 1) for count in counts]


def _filled(runs: Sequence[Run]) -> tuple[float, float]:
    """From the first to the last bin with a thousandth of the weights in it."""
    ends = []
    for run in runs:
        edges, shares = run.result[SECTION]["edges"], _shares(run)
        for k, part in enumerate(shares):
            if part > 0.1:
                ends += [edges[k], edges[k + 1]]
    return (min(ends), max(ends)) if ends else (-40.0, 30.0)


def _says(run: Run) -> str:
    edges, shares = run.result[SECTION]["edges"], _shares(run)
    strong = sum(part for edge, part in zip(edges, shares, strict=False) if edge >= -1e-9)
    return f"{share(strong / 100, 0)} of the weights of {run.said} are stronger than their noise"
