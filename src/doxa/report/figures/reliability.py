"""Reliability: of all the times it says 80 %, is it right 80 % of the time?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from doxa.report.canvas import draw_svg
from doxa.report.figures.drawable import drawable, some
from doxa.report.figures.lines import draw_diagonal, join_sentences, to_percent
from doxa.report.figures.panel import MOST_TABLE_ROWS, NumberTable, Panel, run_legend
from doxa.report.numbers import format_percent, format_plain
from doxa.report.runs import ReportedRun, style_batches

SECTION = "reliability"
TITLE = "Does it know when it is right?"
LEAD = (
    "Predictions sorted by how sure they were. On the dashed diagonal the confidence is honest; below it the run is "
    "overconfident, above it too modest. The larger a marker, the more rows it stands for; those of fewer than ten are "
    "not joined."
)
SMALLEST, LARGEST = 14.0, 90.0  # area of a marker
FEW = 10  # rows, of which one more or less right is a jump of a tenth


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart."""
    return [_panel(batch, f"{key}-{k}") for k, batch in enumerate(style_batches(runs, SECTION))]


def _panel(runs: Sequence[ReportedRun], key: str) -> Panel:
    def draw(axes: Axes) -> None:
        draw_diagonal(axes)
        most = max((count for run in runs for count in run.result[SECTION]["count"]), default=1) or 1
        for run in runs:
            table, style = run.result[SECTION], run.style
            counts, x, y = table["count"], *(drawable(to_percent(table[c])) for c in ("confidence", "accuracy"))
            indices = [k for k in range(len(counts)) if not math.isnan(x[k] + y[k])]
            indices = [indices[k] for k in some(len(indices))]
            joined_indices = [k for k in indices if counts[k] >= FEW]
            axes.plot(
                [x[k] for k in joined_indices],
                [y[k] for k in joined_indices],
                color=style.colour,
                linestyle=style.line,
                zorder=2,
            )
            axes.scatter(
                [x[k] for k in indices],
                [y[k] for k in indices],
                s=[max(SMALLEST, LARGEST * counts[k] / most) for k in indices],
                c=style.colour,
                marker=style.marker,
                linewidths=0,
                zorder=3,
            )
        axes.set(xlim=(0, 102), ylim=(0, 104))

    caption = join_sentences([_caption(run) for run in runs])
    svg = draw_svg(draw, key=key, label=f"Reliability diagram. {caption}", x="confidence, %", y="accuracy, %")
    return Panel(svg, caption, run_legend(runs), numbers=_number_table(runs))


def _caption(run: ReportedRun) -> str:
    table = run.result[SECTION]
    rows = sum(table["count"]) or 1
    mean_confidence, mean_accuracy = (
        sum(n * v for n, v in zip(table["count"], table[c], strict=True) if v is not None) / rows
        for c in ("confidence", "accuracy")
    )
    return (
        f"{run.name_in_sentence} is {format_percent(mean_confidence)} sure on average and right "
        f"{format_percent(mean_accuracy)} of the time"
    )


def _number_table(runs: Sequence[ReportedRun]) -> NumberTable:
    rows = []
    for run in runs:
        table = run.result[SECTION]
        for confidence, accuracy, count in zip(table["confidence"], table["accuracy"], table["count"], strict=True):
            if confidence is not None and accuracy is not None:
                percentages = (format_plain(100 * share, 1) for share in (confidence, accuracy))
                rows.append([run.name, *percentages, f"{count:,}"])
    return ["run", "confidence, %", "accuracy, %", "rows"], [rows[k] for k in some(len(rows), MOST_TABLE_ROWS)]
