"""The scores as a table: runs as rows, the best of each column marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from doxa.report.runs import Run
from doxa.report.scores import MAIN, Score, known

FEW = 8  # scores of unknown names that still make a table to look at
ERRORS = 2  # standard errors of the difference within which two values are not told apart


@dataclass(frozen=True)
class Cell:
    """A value as shown, as stored, and how it compares: "best", "close" to it, or ""."""

    shown: str
    value: float | None
    mark: str


@dataclass(frozen=True)
class Table:
    """Columns of scores, and a row of cells for each run."""

    columns: list[Score]
    rows: list[tuple[Run, list[Cell]]]

    @property
    def marks(self) -> set[str]:
        return {cell.mark for _, cells in self.rows for cell in cells} - {""}


def main_table(runs: Sequence[Run]) -> Table:
    """The scores that tell most; where none of those is known, the first few there are."""
    names = _names(runs)
    return table(runs, [name for name in MAIN if name in names] or names[:FEW])


def whole_table(runs: Sequence[Run]) -> Table:
    """Every score, the ones that tell most first."""
    names = _names(runs)
    return table(runs, [*(n for n in MAIN if n in names), *(n for n in names if n not in MAIN)])


def table(runs: Sequence[Run], names: Sequence[str]) -> Table:
    """The named scores of the runs."""
    columns = [_column(runs, name) for name in names]
    return Table([known(name) for name in names], [(run, [c[i] for c in columns]) for i, run in enumerate(runs)])


def _names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.score))


def _column(runs: Sequence[Run], name: str) -> list[Cell]:
    score = known(name)
    marks = _marks(runs, name, score)
    return [
        Cell(score.shown(run.value(name), run.error(name)), run.value(name), m)
        for run, m in zip(runs, marks, strict=True)
    ]


def _marks(runs: Sequence[Run], name: str, score: Score) -> list[str]:
    having = [run for run in runs if run.value(name) is not None]
    if score.worse is None or len(having) < 2:
        return [""] * len(runs)
    best = min(having, key=lambda run: distance(run, name))
    return ["" if run not in having else _mark(run, best, name) for run in runs]


def _mark(run: Run, best: Run, name: str) -> str:
    if distance(run, name) == distance(best, name):
        return "best"
    return "close" if not told_apart(run, best, name) else ""


def distance(run: Run, name: str) -> float:
    """How far a run's score is from ideal; infinite where it has none."""
    value, worse = run.value(name), known(name).worse
    return math.inf if value is None or worse is None else worse(value)


def told_apart(one: Run, other: Run, name: str) -> bool:
    """Whether two runs differ by more than two standard errors of their difference; by anything where none is known."""
    gap = abs(distance(one, name) - distance(other, name))
    return gap > ERRORS * math.hypot(one.error(name) or 0.0, other.error(name) or 0.0)
