"""From the strings of a file to columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from doxa.tables.forms import CODE, COMMA, DATE, NUMBER, THOUSANDS, parse_numbers
from doxa.tables.table import Cells, Column, Numbers, Words

# What people write where a value is missing.
MISSING = {m: "nan" for w in ("", "na", "n/a", "nan", "null", "none", "?") for m in (w, w.upper(), w.capitalize())}
MISSING["NaN"] = MISSING["<NA>"] = MISSING["#N/A"] = "nan"

LONGEST = 1_000  # letters of what is tried as a number at once: an array has room for the longest in every row
MOST_LETTERS = 2**24  # that such an array may have room for without a look at the longest
LONG = 64  # letters of a number, of which more are not kept for every row

_NONE = np.empty(0, "S1")


class ColumnBuilder:
    """One column, chunk by chunk: plain numbers until another cell comes, then words until all of them are known."""

    def __init__(self) -> None:
        self.plain_numbers: list[NDArray[np.float64]] | None = []
        self.texts: list[Cells | list[str]] = []
        self.zeros = False  # whether a cell begins with one that a number would not have
        self.codes: list[NDArray[np.int64]] = []
        self.index: dict[str, int] = {}

    def add(self, chunk: Sequence[str]) -> None:
        """The column's next cells."""
        cells = [MISSING.get(cell, cell) for cell in map(str.strip, chunk)]
        # Together they are quickly measured, and seldom so many letters that the longest has to be looked for.
        many_letters = self.plain_numbers is not None and len(cells) * len("".join(cells)) > MOST_LETTERS
        if many_letters and len(max(cells, key=len)) > LONGEST:
            self._turn_to_words()
        if self.plain_numbers is not None:
            try:
                written = np.array(cells)
                self.plain_numbers.append(written.astype(np.float64))
                self.texts.append(_compact_cells(written, cells))
                self.zeros = self.zeros or _has_leading_zeros(self.texts[-1])
                return
            except ValueError:
                self._turn_to_words()
        self._add_words(cells)

    def _turn_to_words(self) -> None:
        self.plain_numbers = None
        for cells in self.texts:
            self._add_words(cells if isinstance(cells, list) else cells.astype(str).tolist())
        self.texts = []

    def _add_words(self, cells: Sequence[str]) -> None:
        index = self.index
        self.codes.append(np.array([-1 if c == "nan" else index.setdefault(c, len(index)) for c in cells], np.int64))

    def column(self, comma: bool = False) -> Column:
        """What the cells have in common; `comma` says whether one in a number may be a decimal comma."""
        if self.plain_numbers is not None and not self.zeros:
            cells = None if any(isinstance(t, list) for t in self.texts) else np.concatenate([_NONE, *self.texts])
            return Numbers(np.concatenate([np.empty(0), *self.plain_numbers]), NUMBER, cells)
        if self.plain_numbers is not None:
            self._turn_to_words()
        words = Words(np.concatenate([np.empty(0, np.int64), *self.codes]), tuple(self.index))
        if self.zeros and all(level.isdigit() for level in words.levels):
            return Words(words.codes, words.levels, CODE)
        for form in (NUMBER, DATE, COMMA, THOUSANDS) if comma else (NUMBER, DATE, THOUSANDS):
            numbers = words_as_numbers(words, form)
            if numbers is not None:
                return numbers
        return words


def words_as_numbers(column: Words, form: str) -> Numbers | None:
    """Words that are numbers written in one form, as numbers; None where one of them is not."""
    used = np.unique(column.codes[~column.missing])
    values = parse_numbers((column.levels[i] for i in used), form)
    if values is None:
        return None
    by_level = np.full(len(column.levels) + 1, np.nan)  # the last is for the code −1
    by_level[used] = values
    if max(map(len, column.levels), default=0) > LONG:
        return Numbers(by_level[column.codes], form)
    compact = _compact_cells(np.array([*column.levels, "nan"]), [])
    return Numbers(by_level[column.codes], form, None if isinstance(compact, list) else compact[column.codes])


def _compact_cells(written: NDArray[np.str_], cells: list[str]) -> Cells | list[str]:
    """Cells as an array of few bytes each; the list of them where they are no such."""
    if written.dtype.itemsize > 4 * LONG:
        return cells
    try:
        return written.astype("S")
    except UnicodeEncodeError:
        return cells


def _has_leading_zeros(cells: Cells | list[str]) -> bool:
    """Whether a cell begins with a zero and another digit."""
    if isinstance(cells, list):
        return any(cell[0] == "0" and cell[1:2].isdigit() for cell in cells)
    letters = cells.view(np.uint8).reshape(len(cells), -1)[:, :2]
    return letters.shape[1] == 2 and bool(((letters[:, 0] == ord("0")) & (letters[:, 1] - ord("0") < 10)).any())
