"""A table of named columns, as read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, nearest


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers [N]; a missing one is NaN."""

    values: NDArray[np.float64]

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

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> NDArray[np.bool_]:
        return self.codes < 0

    @property
    def distinct(self) -> int:
        return len(self.levels)


Column = Numbers | Words
"""Numbers or words."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length, by name; `name` says where they came from."""

    name: str
    columns: Mapping[str, Column]

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
        return Table(self.name, {k: c for k, c in self.columns.items() if k not in names})

    def rows(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Table:
        """The rows chosen by a mask or by index."""
        return Table(self.name, {k: part(c, which) for k, c in self.columns.items()})


def part(column: Column, which: NDArray[np.bool_] | NDArray[np.int64]) -> Column:
    """Some rows of a column."""
    if isinstance(column, Numbers):
        return Numbers(column.values[which])
    return Words(column.codes[which], column.levels)
