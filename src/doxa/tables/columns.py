"""From the strings of a file to columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from doxa.tables.table import Column, Numbers, Words

# What people write where a value is missing.
MISSING = {m: "nan" for w in ("", "na", "n/a", "nan", "null", "none", "?") for m in (w, w.upper(), w.capitalize())}
MISSING["NaN"] = MISSING["<NA>"] = MISSING["#N/A"] = "nan"


class Builder:
    """One column, chunk by chunk: numbers until a word comes."""

    def __init__(self) -> None:
        self.numbers: list[NDArray[np.float64]] | None = []
        self.texts: list[Sequence[str]] = []  # kept until it is sure that they are numbers: 1.0 and 1 are other words
        self.codes: list[NDArray[np.int64]] = []
        self.index: dict[str, int] = {}

    def add(self, chunk: Sequence[str]) -> None:
        """The column's next cells."""
        cells = [MISSING.get(cell, cell) for cell in map(str.strip, chunk)]
        if self.numbers is not None:
            try:
                self.numbers.append(np.array(cells).astype(np.float64))
                self.texts.append(cells)
                return
            except ValueError:
                self.numbers = None
                for earlier in self.texts:
                    self._add_words(earlier)
                self.texts = []
        self._add_words(cells)

    def _add_words(self, cells: Sequence[str]) -> None:
        index = self.index
        self.codes.append(np.array([-1 if c == "nan" else index.setdefault(c, len(index)) for c in cells], np.int64))

    def column(self) -> Column:
        """What the cells have in common."""
        if self.numbers is not None:
            return Numbers(np.concatenate([np.empty(0), *self.numbers]))
        return Words(np.concatenate([np.empty(0, np.int64), *self.codes]), tuple(self.index))
