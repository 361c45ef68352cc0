"""A figure and its panels, as the page takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from doxa.report.figures.drawable import some
from doxa.report.runs import ReportedRun

MOST_TABLE_ROWS = 200
NumberTable = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Panel:
    """One drawing with its legend, a sentence that says what is to be seen, and its numbers (heads, rows)."""

    svg: Markup
    caption: str
    legend: list[tuple[Markup, str, str]]  # key, name, full name
    title: str = ""
    numbers: NumberTable | None = None


@dataclass(frozen=True)
class Figure:
    """A heading, what to look for, and the panels."""

    title: str
    lead: str
    panels: list[Panel]


def run_legend(runs: Sequence[ReportedRun]) -> list[tuple[Markup, str, str]]:
    """The key of each run beside its name."""
    return [(run.style.key, run.name, run.full_name) for run in runs]


def table_by_x(runs: Sequence[ReportedRun], head: str, columns: Sequence[Mapping[float, str]]) -> NumberTable:
    """A row for each value of what lies on the x axis, or of many for some, and a column for each run."""
    all_rows = sorted({x for column in columns for x in column})
    rows = [all_rows[k] for k in some(len(all_rows), MOST_TABLE_ROWS)]
    return [head, *(run.name for run in runs)], [[f"{x:.4g}", *(c.get(x, "–") for c in columns)] for x in rows]


def legend_swatch(shape: str, colour: str, dash: str = "") -> Markup:
    """A key for what is not a run: an "area", a "line" or "dots" in one of the page's colours."""
    shape_svg = {
        "area": f'<rect x="3" y="1" width="24" height="10" fill="var({colour})" fill-opacity=".28"/>',
        "deep": f'<rect x="3" y="1" width="24" height="10" fill="var({colour})" fill-opacity=".5"/>',
        "line": f'<path d="M1 6H29" fill="none" stroke="var({colour})" stroke-width="2" stroke-dasharray="{dash}"/>',
        "dots": "".join(
            f'<circle cx="{x}" cy="{y}" r="1.6" fill="var({colour})"/>' for x, y in ((7, 8), (15, 4), (23, 7))
        ),
    }[shape]
    return Markup(f'<svg class="key" viewBox="0 0 30 12" aria-hidden="true">{shape_svg}</svg>')
