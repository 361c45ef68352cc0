"""A table of named columns, as read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, did_you_mean, shorten
from doxa.tables.forms import DATE, FORM_NOTES, NUMBER, WORD, format_day

EXACT = 2.0**53  # up to here a float64 tells whole numbers apart

Cells = NDArray[np.bytes_]


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers [N]; a missing one is NaN. `form` says how they were written, `cells` [N] keeps it."""

    values: NDArray[np.float64]
    form: str = NUMBER
    cells: Cells | None = None  # where the numbers alone do not tell

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> NDArray[np.bool_]:
        return np.isnan(self.values)

    @property
    def distinct(self) -> int:
        return len(np.unique(self.values[~self.missing]))


@dataclass(frozen=True, eq=False)
class Words:
    """A column of words: codes [N] into `levels`, in the order of their first appearance; a missing one is −1."""

    codes: NDArray[np.int64]
    levels: tuple[str, ...]
    form: str = WORD

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> NDArray[np.bool_]:
        return self.codes < 0

    @property
    def distinct(self) -> int:
        return len(np.unique(self.codes[~self.missing]))


Column = Numbers | Words
"""Numbers or words."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length, by name; `name` says where they came from, `remarks` what was left out on the way."""

    name: str
    columns: Mapping[str, Column]
    remarks: tuple[str, ...] = ()
    comma: bool = False  # whether a comma in a number may be a decimal one

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def column(self, name: str) -> Column:
        """The column of this name."""
        if name not in self.columns:
            raise BadInput(f"{self.name} has no column {name!r}{did_you_mean(name, self.columns)}")
        return self.columns[name]

    def without(self, *names: str) -> Table:
        """The table less some of its columns."""
        for name in names:
            self.column(name)
        return replace(self, columns={k: c for k, c in self.columns.items() if k not in names})

    def rows(self, index: NDArray[np.bool_] | NDArray[np.int64]) -> Table:
        """The rows chosen by a mask or by index."""
        return replace(self, columns={k: take_rows(c, index) for k, c in self.columns.items()})

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and what was assumed of how columns are written."""
        return (*self.remarks, *form_notes({k: c.form for k, c in self.columns.items()}))


def take_rows(column: Column, index: NDArray[np.bool_] | NDArray[np.int64]) -> Column:
    """Some rows of a column."""
    if isinstance(column, Numbers):
        return replace(column, values=column.values[index], cells=None if column.cells is None else column.cells[index])
    return replace(column, codes=column.codes[index])


def form_notes(forms: Mapping[str, str]) -> list[str]:
    """For each form that is not a matter of course, the columns in it and what was assumed of them."""
    notes = []
    for form, note in FORM_NOTES.items():
        names = [repr(shorten(name, 30)) for name, column_form in forms.items() if column_form == form]
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            notes.append(f"{'columns' if len(names) > 1 else 'column'} {', '.join(names[:5])}{more}: {note}")
    return notes


def as_words(column: Column) -> Words:
    """A column as words, each cell as it was written."""
    if isinstance(column, Words):
        return column
    if column.cells is None:
        texts = [None if np.isnan(v) else _format_number(float(v), column.form) for v in column.values]
    else:
        written = column.cells.astype(str).tolist()
        texts = [None if missing else t for t, missing in zip(written, column.missing, strict=True)]
    index: dict[str, int] = {}
    codes = [-1 if t is None else index.setdefault(t, len(index)) for t in texts]
    return Words(np.array(codes, np.int64), tuple(index))


def _format_number(value: float, form: str) -> str:
    """A number as one would write it: shortly, but told from every other."""
    if form == DATE:
        return format_day(value)
    short = f"{value:.15g}"
    return short if float(short) == value else repr(value)
