"""Interval coverage: does a 90 % interval hold 90 % of the targets?"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from doxa.report.canvas import picture
from doxa.report.figures.lines import diagonal, joined, line, percent
from doxa.report.figures.panel import Numbers, Panel, legend, pivot
from doxa.report.numbers import share
from doxa.report.runs import Run, batches

SECTION = "intervals"
TITLE = "Do its intervals hold what they promise?"
LEAD = "On the dashed diagonal an interval covers as many targets as it says; below it the intervals are too narrow."


def panels(runs: Sequence[Run], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart."""
    return [_panel(some, f"{key}-{k}") for k, some in enumerate(batches(runs, SECTION))]


def _panel(runs: Sequence[Run], key: str) -> Panel:
    def draw(axes: Axes) -> None:
        diagonal(axes)
        for run in runs:
            table = run.result[SECTION]
            errors = percent(table["se"]) if "se" in table else None
            line(axes, run, percent(table["level"]), percent(table["coverage"]), errors)
        axes.set(xlim=(0, 102), ylim=(0, 104))

    says = joined([_says(run) for run in runs])
    label = f"Coverage of central intervals. {says}"
    svg = picture(draw, key=key, label=label, x="level of the interval, %", y="targets inside, %")
    return Panel(svg, says, legend(runs), numbers=_numbers(runs))


def _says(run: Run) -> str:
    table = run.result[SECTION]
    level, held = max(
        ((a, b) for a, b in zip(table["level"], table["coverage"], strict=True) if b is not None and a <= 0.9),
        default=(0.0, 0.0),
    )
    return f"{share(level, 0)} intervals of {run.said} hold {share(held)}"


def _numbers(runs: Sequence[Run]) -> Numbers:
    columns = []
    for run in runs:
        levels = percent(run.result[SECTION]["level"])
        columns.append(dict(zip(levels, map(share, run.result[SECTION]["coverage"]), strict=True)))
    return pivot(runs, "level, %", columns)
