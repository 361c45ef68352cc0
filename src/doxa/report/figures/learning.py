"""Learning curves: the NLL and the KL, apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from doxa.report.canvas import SLIM, draw_svg, format_tick
from doxa.report.figures.drawable import axis_limits, drawable, near, some
from doxa.report.figures.lines import join_sentences
from doxa.report.figures.panel import NumberTable, Panel, run_legend, table_by_x
from doxa.report.runs import ReportedRun, style_batches

SECTION = "history"
TITLE = "How it learned"
LEAD = (
    "Fit to the data and distance from the prior are two things, and are shown apart: the NLL of the training rows, "
    "the NLL of rows held out for validation, and the KL of the whole net."
)
CURVES = {
    "nll": ("training", "NLL on training rows, nats"),
    "validation_nll": ("validation", "NLL on validation rows, nats"),
    "kl": ("KL", "KL(posterior ‖ prior), nats"),
}
SETTLED = 0.03  # of the epochs: what comes before may leave the picture at its top
LONG = 1e12  # from which numbers are told in powers of ten
ROWS = 8  # epochs told as numbers


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """A panel for each of the curves that any run has; a KL that is nothing but 0 is none."""
    curve_panels = []
    for column, (title, unit) in CURVES.items():
        for k, batch in enumerate(style_batches([run for run in runs if any(_curve(run, column))], SECTION)):
            curve_panels.append(_panel(batch, column, title, unit, f"{key}-{column}-{k}"))
    return curve_panels


def _panel(runs: Sequence[ReportedRun], column: str, title: str, unit: str, key: str) -> Panel:
    curves = {run.series_index: _curve(run, column) for run in runs}
    values_known = [v for curve in curves.values() for v in drawable(curve) if not math.isnan(v)] or [0.0]
    logarithmic = min(values_known) > 0 and max(values_known) > 20 * min(values_known)
    settled = [v for curve in curves.values() for v in curve[int(SETTLED * len(curve)) :] if v is not None]
    limits = axis_limits(settled)

    def draw(axes: Axes) -> None:
        for run in runs:
            points = some(len(curves[run.series_index]))
            epochs = [1 + k for k in points]
            values = drawable([curves[run.series_index][k] for k in points])
            if not logarithmic:
                values = near(values, limits)
            style = run.style
            axes.plot(
                epochs,
                values,
                color=style.colour,
                linestyle=style.line,
                marker=style.marker,
                markevery=(
                    min(run.series_index * max(1, len(values) // 20), len(values) - 1),
                    max(1, len(values) // 4),
                ),
            )
        if logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(
                LogLocator(10, (1.0,) if max(values_known) > 200 * min(values_known) else (1.0, 3.0))
            )
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))
            axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            axes.set_ylim(limits)

    caption = join_sentences(
        [f"{run.name_in_sentence} ends at {_format_last(curves[run.series_index])}" for run in runs]
    )
    label = f"Learning curve of {title}. {caption}"
    svg = draw_svg(draw, key=key, label=label, x="epoch", y=unit, width=SLIM, height=220)
    return Panel(svg, caption, run_legend(runs), title=title, numbers=_number_table(list(curves.values()), runs))


def _curve(run: ReportedRun, column: str) -> list[Any]:
    return [row.get(column) for row in run.result.get(SECTION, [])]


def _format_last(curve: Sequence[Any]) -> str:
    values = [v for v in curve if v is not None]
    if not values:
        return "–"
    return f"{values[-1]:{',.0f' if 1000 <= abs(values[-1]) < LONG else '.4g'}}".replace("-", "−")


def _number_table(curves: Sequence[Sequence[Any]], runs: Sequence[ReportedRun]) -> NumberTable:
    longest = max(map(len, curves))
    epoch_indices = sorted({round(i * (longest - 1) / (ROWS - 1)) for i in range(ROWS)})
    columns = [
        {float(k + 1): _format_last(curve[k : k + 1]) for k in epoch_indices if k < len(curve)} for curve in curves
    ]
    return table_by_x(runs, "epoch", columns)
