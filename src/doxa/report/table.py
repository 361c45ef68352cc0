"""The scores as a table: runs as rows, the best of each column marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from doxa.report.runs import ReportedRun
from doxa.report.scores import MAIN, Score, find_score

FEW = 8  # scores of unknown names that still make a table to look at
STANDARD_ERRORS = 2  # standard errors of the difference within which two values are not told apart


@dataclass(frozen=True)
class Cell:
    """A value as shown, as stored, and how it compares: "best", "close" to it, or ""."""

    text: str
    value: float | None
    mark: str


@dataclass(frozen=True)
class ReportTable:
    """Columns of scores, and a row of cells for each run."""

    columns: list[Score]
    rows: list[tuple[ReportedRun, list[Cell]]]

    @property
    def marks(self) -> set[str]:
        return {cell.mark for _, cells in self.rows for cell in cells} - {""}


def main_table(runs: Sequence[ReportedRun]) -> ReportTable:
    """The scores that tell most; where none of those is known, the first few there are."""
    names = _score_names(runs)
    return table(runs, [name for name in MAIN if name in names] or names[:FEW])


def full_table(runs: Sequence[ReportedRun]) -> ReportTable:
    """Every score, the ones that tell most first."""
    names = _score_names(runs)
    return table(runs, [*(n for n in MAIN if n in names), *(n for n in names if n not in MAIN)])


def table(runs: Sequence[ReportedRun], names: Sequence[str]) -> ReportTable:
    """The named scores of the runs."""
    columns = [_column(runs, name) for name in names]
    return ReportTable(
        [find_score(name) for name in names], [(run, [c[i] for c in columns]) for i, run in enumerate(runs)]
    )


def _score_names(runs: Sequence[ReportedRun]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.scores))


def _column(runs: Sequence[ReportedRun], name: str) -> list[Cell]:
    score = find_score(name)
    marks = _marks(runs, name, score)
    return [
        Cell(score.format_value(run.value(name), run.error(name)), run.value(name), m)
        for run, m in zip(runs, marks, strict=True)
    ]


def _marks(runs: Sequence[ReportedRun], name: str, score: Score) -> list[str]:
    runs_with_score = [run for run in runs if run.value(name) is not None]
    if score.distance_from_ideal is None or len(runs_with_score) < 2:
        return [""] * len(runs)
    best = min(runs_with_score, key=lambda run: distance(run, name))
    return ["" if run not in runs_with_score else _mark(run, best, name) for run in runs]


def _mark(run: ReportedRun, best: ReportedRun, name: str) -> str:
    if distance(run, name) == distance(best, name):
        return "best"
    return "close" if not differ_significantly(run, best, name) else ""


def distance(run: ReportedRun, name: str) -> float:
    """How far a run's score is from ideal; infinite where it has none."""
    value, distance_from_ideal = run.value(name), find_score(name).distance_from_ideal
    return math.inf if value is None or distance_from_ideal is None else distance_from_ideal(value)


def differ_significantly(a: ReportedRun, b: ReportedRun, name: str) -> bool:
    """Whether two runs differ by more than two standard errors of their difference; by anything where none is known."""
    gap = abs(distance(a, name) - distance(b, name))
    return gap > STANDARD_ERRORS * math.hypot(a.error(name) or 0.0, b.error(name) or 0.0)
