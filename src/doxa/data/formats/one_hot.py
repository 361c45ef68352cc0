"""Letters as columns of zeros and ones."""

from __future__ import annotations

import dataclasses

import numpy as np

from doxa.data.tabular import Tabular


def one_hot(table: Tabular) -> Tabular:
    """A column for each letter of each column, named "column=letter", in order of the letters: float32 [N, letters]."""
    return _encode(table, dropped=0)


def drop_first(table: Tabular) -> Tabular:
    """As `one_hot`, less the first letter of each column, which is where all the others are zero."""
    return _encode(table, dropped=1)


def _encode(table: Tabular, dropped: int) -> Tabular:
    columns = [
        (f"{name}={letter}", letters == letter)
        for name, letters in zip(table.columns, table.x.T, strict=True)
        for letter in np.unique(letters)[dropped:]
    ]
    x = np.column_stack([present for _, present in columns]).astype(np.float32)
    return dataclasses.replace(table, x=x, columns=tuple(name for name, _ in columns))
