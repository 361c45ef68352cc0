"""Rows with their targets for a run: a table's, or those held out from a named data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from doxa_cli.terminal import Say, row_count_printer

if TYPE_CHECKING:
    from torch import Tensor

    from doxa.runs import SavedRun


@dataclass(frozen=True)
class EvaluationRows:
    """Inputs x and targets y as a run's net takes them, and inputs like those it was learned from."""

    name: str
    x: Tensor
    y: Tensor
    training: Tensor


def load_rows(saved_run: SavedRun, source: str | None, encoding: str, say: Say) -> EvaluationRows | None:
    """The rows of a table or a named data set; else those held out; None where the run came from a table, not kept."""
    from doxa import data
    from doxa.runs import labelled_rows, training_data_of
    from doxa.tables import read

    if source is None:
        training_data = training_data_of(saved_run)
        return (
            None
            if training_data is None
            else EvaluationRows(training_data.name, *training_data.test, training_data.train[0])
        )
    if source in data.TABLE:
        x, y = labelled_rows(saved_run, source)
        return EvaluationRows(source, x, y, x)
    table = read(source, encoding, row_count_printer(say))
    x, y = labelled_rows(saved_run, table)
    return EvaluationRows(table.name, x, y, x)


def require_rows(saved_run: SavedRun, source: str | None, encoding: str, say: Say) -> EvaluationRows:
    """The same, and an error that names the missing argument where there are none."""
    rows = load_rows(saved_run, source, encoding, say)
    if rows is not None:
        return rows
    from doxa.errors import BadInput, shorten

    raise BadInput(
        f"{saved_run.folder} was learned from {shorten(saved_run.spec['data'])}, a table that is not kept: name a "
        f"TABLE after the run, with rows that have the column {shorten(saved_run.spec['target'])!r}"
    )
