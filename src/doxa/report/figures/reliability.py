"""Reliability: of all the times it says 80 %, is it right 80 % of the time?"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from doxa.report.canvas import picture
from doxa.report.figures.lines import diagonal, joined, percent
from doxa.report.figures.panel import Numbers, Panel, legend
from doxa.report.numbers import share
from doxa.report.runs import Run, batches

SECTION = "reliability"
TITLE = "Does it know when it is right?"
LEAD = (
    "Predictions sorted by how sure they were. On the dashed diagonal the confidence is honest; below it the run is "
    "overconfident, above it too modest. The larger a marker, the more rows it stands for; those of fewer than ten are "
    "not joined."
)
SMALLEST, LARGEST = 14.0, 90.0  # area of a marker
FEW = 10  # rows, of which one more or less right is a jump of a tenth


def panels(runs: Sequence[Run], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart."""
    return [_panel(some, f"{key}-{k}") for k, some in enumerate(batches(runs, SECTION))]


def _panel(runs: Sequence[Run], key: str) -> Panel:
    def draw(axes: Axes) -> None:
        diagonal(axes)
        most = max((count for run in runs for count in run.result[SECTION]["count"]), default=1) or 1
        for run in runs:
            table, style = run.result[SECTION], run.style
            counts, x, y = table["count"], percent(table["confidence"]), percent(table["accuracy"])
            known = [k for k in range(len(counts)) if x[k] is not None and y[k] is not None]
            many = [k for k in known if counts[k] >= FEW]
            axes.plot([x[k] for k in many], [y[k] for k in many], color=style.colour, linestyle=style.line, zorder=2)
            axes.scatter(
                [x[k] for k in known],
                [y[k] for k in known],
                s=[max(SMALLEST, LARGEST * counts[k] / most) for k in known],
                c=style.colour,
                marker=style.marker,
                linewidths=0,
                zorder=3,
            )
        axes.set(xlim=(0, 102), ylim=(0, 104))

    says = joined([_says(run) for run in runs])
    svg = picture(draw, key=key, label=f"Reliability diagram. {says}", x="confidence, %", y="accuracy, %")
    return Panel(svg, says, legend(runs), numbers=_numbers(runs))


def _says(run: Run) -> str:
    table = run.result[SECTION]
    rows = sum(table["count"]) or 1
    said, was = (
        sum(n * v for n, v in zip(table["count"], table[c], strict=True) if v is not None) / rows
        for c in ("confidence", "accuracy")
    )
    return f"{run.said} is {share(said)} sure on average and right {share(was)} of the time"


def _numbers(runs: Sequence[Run]) -> Numbers:
    rows = []
    for run in runs:
        table = run.result[SECTION]
        for said, was, count in zip(table["confidence"], table["accuracy"], table["count"], strict=True):
            if said is not None and was is not None:
                rows.append([run.name, f"{100 * said:.1f}", f"{100 * was:.1f}", f"{count:,}"])
    return ["run", "confidence, %", "accuracy, %", "rows"], rows
