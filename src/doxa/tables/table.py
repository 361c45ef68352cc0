"""A table of named columns, as read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, nearest, shown
from doxa.tables.forms import ASSUMED, DATE, NUMBER, WORD, day

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
            raise BadInput(f"{self.name} has no column {name!r}{nearest(name, self.columns)}")
        return self.columns[name]

    def without(self, *names: str) -> Table:
        """The table less some of its columns."""
        for name in names:
            self.column(name)
        return replace(self, columns={k: c for k, c in self.columns.items() if k not in names})

    def rows(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Table:
        """The rows chosen by a mask or by index."""
        return replace(self, columns={k: part(c, which) for k, c in self.columns.items()})

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and what was assumed of how columns are written."""
        return (*self.remarks, *assumptions({k: c.form for k, c in self.columns.items()}))


def part(column: Column, which: NDArray[np.bool_] | NDArray[np.int64]) -> Column:
    """Some rows of a column."""
    if isinstance(column, Numbers):
        return replace(column, values=column.values[which], cells=None if column.cells is None else column.cells[which])
    return replace(column, codes=column.codes[which])


def assumptions(forms: Mapping[str, str]) -> list[str]:
    """For each form that is not a matter of course, the columns in it and what was assumed of them."""
    said = []
    for form, what in ASSUMED.items():
        names = [repr(shown(name, 30)) for name, found in forms.items() if found == form]
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            said.append(f"{'columns' if len(names) > 1 else 'column'} {', '.join(names[:5])}{more}: {what}")
    return said


def as_words(column: Column) -> Words:
    """A column as words, each cell as it was written."""
    if isinstance(column, Words):
        return column
    if column.cells is None:
        texts = [None if np.isnan(v) else _text(float(v), column.form) for v in column.values]
    else:
        known = column.cells.astype(str).tolist()
        texts = [None if gone else t for t, gone in zip(known, column.missing, strict=True)]
    index: dict[str, int] = {}
    codes = [-1 if t is None else index.setdefault(t, len(index)) for t in texts]
    return Words(np.array(codes, np.int64), tuple(index))


def _text(value: float, form: str) -> str:
    """A number as one would write it: shortly, but told from every other."""
    if form == DATE:
        return day(value)
    short = f"{value:.15g}"
    return short if float(short) == value else repr(value)
