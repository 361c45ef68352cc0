"""The pruning curve: how much of the net can go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from doxa.report.canvas import draw_svg
from doxa.report.figures.drawable import axis_limits, some
from doxa.report.figures.lines import draw_line
from doxa.report.figures.panel import NumberTable, Panel, run_legend, table_by_x
from doxa.report.numbers import format_percent
from doxa.report.runs import ReportedRun, style_batches

SECTION = "pruning"
TITLE = "How much of it can go?"
LEAD = (
    "The least relevant weights are set to zero: ranked by signal-to-noise where a run knows its noise, by size where "
    "it does not."
)
MOST_TICKS = 40
CAPTION_SHARE = 0.95  # the share of which is told in words


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """One panel for as many runs as can be told apart, all with the same limits."""
    limits = axis_limits([v for run in runs if run.has_section(SECTION) for v in _upper_ends(run)], floor=0.0)
    return [_panel(batch, f"{key}-{k}", limits) for k, batch in enumerate(style_batches(runs, SECTION))]


def _panel(runs: Sequence[ReportedRun], key: str, limits: tuple[float, float]) -> Panel:
    shares = sorted({share for run in runs for share in run.result[SECTION]["share"]})
    place_of = {share: place for place, share in enumerate(shares)}

    def draw(axes: Axes) -> None:
        for run in runs:
            table = run.result[SECTION]
            # Evenly spaced: the last few percent, where it matters, would else be a hair's breadth.
            places = [place_of[share] for share in table["share"]]
            errors = [None if e is None else _percent_factor(run) * e for e in table["se"]] if "se" in table else None
            draw_line(axes, run, places, _skill(run), errors)
        labelled = some(len(shares), MOST_TICKS)
        axes.set_xticks(labelled, [f"{100 * shares[place]:g}" for place in labelled])
        axes.set_ylim(limits)

    caption = _caption(runs)
    svg = draw_svg(draw, key=key, label=f"Pruning curve. {caption}", x="weights set to zero, %", y=_axis_label(runs[0]))
    return Panel(svg, caption, run_legend(runs), numbers=_number_table(runs))


def _skill_name(run: ReportedRun) -> str:
    return "error" if "error" in run.result[SECTION] else "rmse"


def _percent_factor(run: ReportedRun) -> float:
    return 100.0 if _skill_name(run) == "error" else 1.0


def _axis_label(run: ReportedRun) -> str:
    return "error, %" if _skill_name(run) == "error" else "RMSE"


def _skill(run: ReportedRun) -> list[Any]:
    return [None if v is None else _percent_factor(run) * v for v in run.result[SECTION][_skill_name(run)]]


def _upper_ends(run: ReportedRun) -> list[Any]:
    """The upper ends of its whiskers."""
    errors = run.result[SECTION].get("se", [None] * len(_skill(run)))
    return [v and v + _percent_factor(run) * (e or 0.0) for v, e in zip(_skill(run), errors, strict=True)]


def _caption(runs: Sequence[ReportedRun]) -> str:
    shares = runs[0].result[SECTION]["share"]
    caption_share = min(shares, key=lambda share: abs(share - CAPTION_SHARE))
    ends = [f"{_value(run, shares[0])} to {_value(run, caption_share)} for {run.name_in_sentence}" for run in runs]
    skill = "error" if _skill_name(runs[0]) == "error" else "RMSE"
    return (
        f"From {format_percent(shares[0], 0)} to {format_percent(caption_share, 0)} pruned the {skill} goes from "
        f"{', '.join(ends)}."
    )


def _value(run: ReportedRun, share: float) -> str:
    values = dict(zip(run.result[SECTION]["share"], run.result[SECTION][_skill_name(run)], strict=True))
    return _format_value(run, values.get(share))


def _format_value(run: ReportedRun, value: float | None) -> str:
    return format_percent(value) if value is None or _skill_name(run) == "error" else f"{value:.3g}"


def _number_table(runs: Sequence[ReportedRun]) -> NumberTable:
    columns = []
    for run in runs:
        table = run.result[SECTION]
        pairs = zip(table["share"], table[_skill_name(run)], strict=True)
        columns.append({100 * share: _format_value(run, value) for share, value in pairs})
    return table_by_x(runs, "pruned, %", columns)
