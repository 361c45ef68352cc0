"""The signal-to-noise ratios of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes

from doxa.report.canvas import draw_svg
from doxa.report.figures.drawable import apart, clipped, percentages, some
from doxa.report.figures.lines import join_sentences
from doxa.report.figures.panel import Panel, run_legend
from doxa.report.numbers import format_percent
from doxa.report.palette import MUTED
from doxa.report.runs import ReportedRun, style_batches

SECTION = "signal_to_noise"
TITLE = "Which weights carry signal?"
LEAD = (
    "Every weight by |mean| / scale, in decibels; for several nets, the root mean square of theirs. Left of 0 dB a "
    "weight is mostly noise, and pruning takes it first; weights beyond the ends of the scale are counted at its ends."
)


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart, all with the same limits."""
    top = 1.06 * max(
        (percentage for run in runs if run.has_section(SECTION) for percentage in _bin_percentages(run)), default=1.0
    )
    top = top or 1.0
    return [_panel(batch, f"{key}-{k}", top) for k, batch in enumerate(style_batches(runs, SECTION))]


def _panel(runs: Sequence[ReportedRun], key: str, top: float) -> Panel:
    def draw(axes: Axes) -> None:
        axes.axvline(0, color=MUTED, linewidth=1.0, linestyle=(0, (3, 3)))
        for run in runs:
            edges, heights = clipped(run.result[SECTION]["edges"]), _bin_percentages(run)
            points = some(len(heights))
            edges, heights = [*(edges[k] for k in points), edges[-1]], [heights[k] for k in points]
            axes.stairs(heights, edges, fill=True, color=run.style.colour, alpha=0.3, linewidth=0)
            middles = [(a + b) / 2 for a, b in pairwise(edges)]
            axes.plot(middles, heights, color=run.style.colour, linestyle=run.style.line, linewidth=1.4)
        axes.set(xlim=_filled_limits(runs), ylim=(0, top))

    caption = join_sentences([_caption(run) for run in runs])
    label = f"Histogram of signal-to-noise ratios. {caption}"
    svg = draw_svg(draw, key=key, label=label, x="signal-to-noise, dB", y="weights, %")
    return Panel(svg, caption, run_legend(runs))


def _bin_percentages(run: ReportedRun) -> list[float]:
    return percentages(run.result[SECTION]["count"])


def _filled_limits(runs: Sequence[ReportedRun]) -> tuple[float, float]:
    """From the first to the last bin with a thousandth of the weights in it."""
    ends = []
    for run in runs:
        edges = clipped(run.result[SECTION]["edges"])
        for k, percentage in enumerate(_bin_percentages(run)):
            if percentage > 0.1:
                ends += [edges[k], edges[k + 1]]
    return apart(min(ends), max(ends)) if ends else (-40.0, 30.0)


def _caption(run: ReportedRun) -> str:
    edges = run.result[SECTION]["edges"]
    strong = sum(percentage for edge, percentage in zip(edges, _bin_percentages(run), strict=False) if edge >= -1e-9)
    return f"{format_percent(strong / 100, 0)} of the weights of {run.name_in_sentence} are stronger than their noise"
