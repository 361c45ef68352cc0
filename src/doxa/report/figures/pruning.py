"""The pruning curve: how much of the net can go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from doxa.report.canvas import picture
from doxa.report.figures.lines import line, span
from doxa.report.figures.panel import Numbers, Panel, legend, pivot
from doxa.report.numbers import share
from doxa.report.runs import Run, batches

SECTION = "pruning"
TITLE = "How much of it can go?"
LEAD = (
    "The least relevant weights are set to zero: ranked by signal-to-noise where a run knows its noise, by size where "
    "it does not."
)
TOLD = 0.95  # the share of which is told in words


def panels(runs: Sequence[Run], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart, all with the same limits."""
    limits = span([v for run in runs if run.has(SECTION) for v in _tops(run)], floor=0.0)
    return [_panel(some, f"{key}-{k}", limits) for k, some in enumerate(batches(runs, SECTION))]


def _panel(runs: Sequence[Run], key: str, limits: tuple[float, float]) -> Panel:
    shares = sorted({part for run in runs for part in run.result[SECTION]["share"]})

    def draw(axes: Axes) -> None:
        for run in runs:
            table = run.result[SECTION]
            # Evenly spaced: the last few percent, where it matters, would else be a hair's breadth.
            places = [shares.index(part) for part in table["share"]]
            errors = [None if e is None else _factor(run) * e for e in table["se"]] if "se" in table else None
            line(axes, run, places, _skill(run), errors)
        axes.set_xticks(range(len(shares)), [f"{100 * part:g}" for part in shares])
        axes.set_ylim(limits)

    says = _says(runs)
    svg = picture(draw, key=key, label=f"Pruning curve. {says}", x="weights set to zero, %", y=_unit(runs[0]))
    return Panel(svg, says, legend(runs), numbers=_numbers(runs))


def _name(run: Run) -> str:
    return "error" if "error" in run.result[SECTION] else "rmse"


def _factor(run: Run) -> float:
    return 100.0 if _name(run) == "error" else 1.0


def _unit(run: Run) -> str:
    return "error, %" if _name(run) == "error" else "RMSE"


def _skill(run: Run) -> list[Any]:
    return [None if v is None else _factor(run) * v for v in run.result[SECTION][_name(run)]]


def _tops(run: Run) -> list[Any]:
    """The upper ends of its whiskers."""
    errors = run.result[SECTION].get("se", [None] * len(_skill(run)))
    return [v and v + _factor(run) * (e or 0.0) for v, e in zip(_skill(run), errors, strict=True)]


def _says(runs: Sequence[Run]) -> str:
    shares = runs[0].result[SECTION]["share"]
    told = min(shares, key=lambda part: abs(part - TOLD))
    ends = [f"{_value(run, shares[0])} to {_value(run, told)} for {run.said}" for run in runs]
    skill = "error" if _name(runs[0]) == "error" else "RMSE"
    return f"From {share(shares[0], 0)} to {share(told, 0)} pruned the {skill} goes from {', '.join(ends)}."


def _value(run: Run, part: float) -> str:
    values = dict(zip(run.result[SECTION]["share"], run.result[SECTION][_name(run)], strict=True))
    value = values.get(part)
    return share(value) if value is None or _name(run) == "error" else f"{value:.3g}"


def _numbers(runs: Sequence[Run]) -> Numbers:
    shares = [run.result[SECTION]["share"] for run in runs]
    columns = [{100 * part: _value(run, part) for part in parts} for run, parts in zip(runs, shares, strict=True)]
    return pivot(runs, "pruned, %", columns)
