"""Learning curves: the NLL and the KL, apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from doxa.report.canvas import SLIM, picture, tick
from doxa.report.figures.lines import joined, numbers, span
from doxa.report.figures.panel import Numbers, Panel, legend, pivot
from doxa.report.runs import Run, batches

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
ROWS = 8  # epochs told as numbers


def panels(runs: Sequence[Run], key: str) -> list[Panel]:
    """A panel for each of the curves that any run has; a KL that is nothing but 0 is none."""
    found = []
    for column, (title, unit) in CURVES.items():
        for k, some in enumerate(batches([run for run in runs if any(_curve(run, column))], SECTION)):
            found.append(_panel(some, column, title, unit, f"{key}-{column}-{k}"))
    return found


def _panel(runs: Sequence[Run], column: str, title: str, unit: str, key: str) -> Panel:
    curves = {run.place: _curve(run, column) for run in runs}
    known = [v for curve in curves.values() for v in curve if v is not None]
    logarithmic = min(known) > 0 and max(known) > 20 * min(known)
    settled = [v for curve in curves.values() for v in curve[int(SETTLED * len(curve)) :] if v is not None]

    def draw(axes: Axes) -> None:
        for run in runs:
            epochs = range(1, len(curves[run.place]) + 1)
            values = numbers(curves[run.place])
            style = run.style
            axes.plot(
                epochs,
                values,
                color=style.colour,
                linestyle=style.line,
                marker=style.marker,
                markevery=(min(run.place * max(1, len(values) // 20), len(values) - 1), max(1, len(values) // 4)),
            )
        if logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(10, (1.0,) if max(known) > 200 * min(known) else (1.0, 3.0)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
            axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            axes.set_ylim(span(settled))

    says = joined([f"{run.said} ends at {_last(curves[run.place])}" for run in runs])
    label = f"Learning curve of {title}. {says}"
    svg = picture(draw, key=key, label=label, x="epoch", y=unit, width=SLIM, height=220)
    return Panel(svg, says, legend(runs), title=title, numbers=_numbers(list(curves.values()), runs))


def _curve(run: Run, column: str) -> list[Any]:
    return [row.get(column) for row in run.result.get(SECTION, [])]


def _last(curve: Sequence[Any]) -> str:
    known = [v for v in curve if v is not None]
    if not known:
        return "–"
    return f"{known[-1]:{',.0f' if abs(known[-1]) >= 1000 else '.4g'}}".replace("-", "−")


def _numbers(curves: Sequence[Sequence[Any]], runs: Sequence[Run]) -> Numbers:
    longest = max(map(len, curves))
    some = sorted({round(i * (longest - 1) / (ROWS - 1)) for i in range(ROWS)})
    columns = [{float(k + 1): _last(curve[k : k + 1]) for k in some if k < len(curve)} for curve in curves]
    return pivot(runs, "epoch", columns)
