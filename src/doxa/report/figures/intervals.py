"""Interval coverage: does a 90 % interval hold 90 % of the targets?"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from doxa.report.canvas import draw_svg
from doxa.report.figures.lines import draw_diagonal, draw_line, join_sentences, to_percent
from doxa.report.figures.panel import NumberTable, Panel, run_legend, table_by_x
from doxa.report.numbers import format_percent
from doxa.report.runs import ReportedRun, style_batches

SECTION = "intervals"
TITLE = "Do its intervals hold what they promise?"
LEAD = "On the dashed diagonal an interval covers as many targets as it says; below it the intervals are too narrow."


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart."""
    return [_panel(batch, f"{key}-{k}") for k, batch in enumerate(style_batches(runs, SECTION))]


def _panel(runs: Sequence[ReportedRun], key: str) -> Panel:
    def draw(axes: Axes) -> None:
        draw_diagonal(axes)
        for run in runs:
            table = run.result[SECTION]
            errors = to_percent(table["se"]) if "se" in table else None
            draw_line(axes, run, to_percent(table["level"]), to_percent(table["coverage"]), errors)
        axes.set(xlim=(0, 102), ylim=(0, 104))

    caption = join_sentences([_caption(run) for run in runs])
    label = f"Coverage of central intervals. {caption}"
    svg = draw_svg(draw, key=key, label=label, x="level of the interval, %", y="targets inside, %")
    return Panel(svg, caption, run_legend(runs), numbers=_number_table(runs))


def _caption(run: ReportedRun) -> str:
    table = run.result[SECTION]
    level, covered = max(
        ((a, b) for a, b in zip(table["level"], table["coverage"], strict=True) if b is not None and a <= 0.9),
        default=(0.0, 0.0),
    )
    return f"{format_percent(level, 0)} intervals of {run.name_in_sentence} hold {format_percent(covered)}"


def _number_table(runs: Sequence[ReportedRun]) -> NumberTable:
    columns = []
    for run in runs:
        levels = to_percent(run.result[SECTION]["level"])
        columns.append(dict(zip(levels, map(format_percent, run.result[SECTION]["coverage"]), strict=True)))
    return table_by_x(runs, "level, %", columns)
