"""Tables as text: a line a row, cells between separators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.data.files import broken, read


def decoded(path: Path) -> str:
    """The text of a file."""
    try:
        return read(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise broken(path, f"it holds bytes that are no text, from byte {error.start} on") from error


def cells(path: Path, columns: int, rows: int, separator: str | None = ",") -> list[list[str]]:
    """The cells of a file without a header, [rows][columns]; lines with nothing on them do not count."""
    found = []
    for number, line in enumerate(decoded(path).splitlines(), 1):
        if line.strip():
            row = [cell.strip() for cell in line.strip().split(separator)]
            if len(row) != columns:
                raise broken(path, f"line {number} has {len(row)} columns, expected {columns}")
            found.append(row)
    if len(found) != rows:
        raise broken(path, f"it has {len(found)} rows, expected {rows}")
    return found


def numbers(path: Path, found: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Cells as finite numbers: float64 [rows, columns]."""
    try:
        values = np.array(found, np.float64)
    except ValueError:
        values = np.array([[_number(cell) for cell in row] for row in found])
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        row, column = wrong[0]
        raise broken(path, f"row {row + 1}, column {column + 1} holds {found[row][column]!r}, expected a number")
    return values


def codes(path: Path, found: Sequence[str], letters: str) -> NDArray[np.int64]:
    """One-letter cells as their places in `letters`: int64 [rows]."""
    for row, cell in enumerate(found, 1):
        if len(cell) != 1 or cell not in letters:
            raise broken(path, f"row {row} holds {cell!r}, expected one of {', '.join(letters)}")
    return np.array([letters.index(cell) for cell in found], np.int64)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
