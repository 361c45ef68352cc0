"""Accuracy under attack: how much a small, aimed change of the inputs costs."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from doxa.report.canvas import picture
from doxa.report.figures.lines import joined, line, percent
from doxa.report.figures.panel import Numbers, Panel, legend, pivot
from doxa.report.numbers import share
from doxa.report.runs import Run, batches

SECTION = "attack"
TITLE = "How easily is it misled?"
LEAD = (
    "Accuracy when every input is moved by up to the radius in the direction that hurts most (FGSM); each run is "
    "attacked through its own gradients."
)


def panels(runs: Sequence[Run], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart."""
    return [_panel(some, f"{key}-{k}") for k, some in enumerate(batches(runs, SECTION))]


def _panel(runs: Sequence[Run], key: str) -> Panel:
    def draw(axes: Axes) -> None:
        for run in runs:
            table = run.result[SECTION]
            errors = percent(table["se"]) if "se" in table else None
            line(axes, run, table["radius"], percent(table["accuracy"]), errors)
        axes.set_ylim(0, 104)

    says = joined([_says(run) for run in runs])
    svg = picture(draw, key=key, label=f"Accuracy under attack. {says}", x="radius", y="accuracy, %")
    return Panel(svg, says, legend(runs), numbers=_numbers(runs))


def _says(run: Run) -> str:
    table = run.result[SECTION]
    clean, last = share(table["accuracy"][0]), share(table["accuracy"][-1])
    return f"{run.said} goes from {clean} to {last} at radius {table['radius'][-1]:g}"


def _numbers(runs: Sequence[Run]) -> Numbers:
    tables = [run.result[SECTION] for run in runs]
    return pivot(runs, "radius", [dict(zip(t["radius"], map(share, t["accuracy"]), strict=True)) for t in tables])
