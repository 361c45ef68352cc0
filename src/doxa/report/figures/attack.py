"""Accuracy under attack: how much a small, aimed change of the inputs costs."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from doxa.report.canvas import draw_svg
from doxa.report.figures.lines import draw_line, join_sentences, to_percent
from doxa.report.figures.panel import NumberTable, Panel, run_legend, table_by_x
from doxa.report.numbers import format_percent
from doxa.report.runs import ReportedRun, style_batches

SECTION = "attack"
TITLE = "How easily is it misled?"
LEAD = (
    "Accuracy when every input is moved by up to the radius in the direction that hurts most (FGSM); each run is "
    "attacked through its own gradients."
)


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart."""
    return [_panel(batch, f"{key}-{k}") for k, batch in enumerate(style_batches(runs, SECTION))]


def _panel(runs: Sequence[ReportedRun], key: str) -> Panel:
    def draw(axes: Axes) -> None:
        for run in runs:
            table = run.result[SECTION]
            errors = to_percent(table["se"]) if "se" in table else None
            draw_line(axes, run, table["radius"], to_percent(table["accuracy"]), errors)
        axes.set_ylim(0, 104)

    caption = join_sentences([_caption(run) for run in runs])
    svg = draw_svg(draw, key=key, label=f"Accuracy under attack. {caption}", x="radius", y="accuracy, %")
    return Panel(svg, caption, run_legend(runs), numbers=_number_table(runs))


def _caption(run: ReportedRun) -> str:
    table = run.result[SECTION]
    clean, last = format_percent(table["accuracy"][0]), format_percent(table["accuracy"][-1])
    return f"{run.name_in_sentence} goes from {clean} to {last} at radius {table['radius'][-1]:g}"


def _number_table(runs: Sequence[ReportedRun]) -> NumberTable:
    tables = [run.result[SECTION] for run in runs]
    return table_by_x(
        runs, "radius", [dict(zip(t["radius"], map(format_percent, t["accuracy"]), strict=True)) for t in tables]
    )
