"""Tables as text: a line a row, cells between separators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.data.files import broken_file_error, read_bytes


def read_text(path: Path) -> str:
    """The text of a file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise broken_file_error(path, f"it holds bytes that are no text, from byte {error.start} on") from error


def read_cells(path: Path, columns: int, rows: int, separator: str | None = ",") -> list[list[str]]:
    """The cells of a file without a header, [rows][columns]; lines with nothing on them do not count."""
    table = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip():
            row = [cell.strip() for cell in line.strip().split(separator)]
            if len(row) != columns:
                raise broken_file_error(path, f"line {number} has {len(row)} columns, expected {columns}")
            table.append(row)
    if len(table) != rows:
        raise broken_file_error(path, f"it has {len(table)} rows, expected {rows}")
    return table


def parse_numbers(path: Path, cells: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Cells as finite numbers: float64 [rows, columns]."""
    try:
        values = np.array(cells, np.float64)
    except ValueError:
        values = np.array([[_number(cell) for cell in row] for row in cells])
    invalid = np.argwhere(~np.isfinite(values))
    if len(invalid):
        row, column = invalid[0]
        raise broken_file_error(
            path, f"row {row + 1}, column {column + 1} holds {cells[row][column]!r}, expected a number"
        )
    return values


def encode_letters(path: Path, cells: Sequence[str], letters: str) -> NDArray[np.int64]:
    """One-letter cells as their places in `letters`: int64 [rows]."""
    for row, cell in enumerate(cells, 1):
        if len(cell) != 1 or cell not in letters:
            raise broken_file_error(path, f"row {row} holds {cell!r}, expected one of {', '.join(letters)}")
    return np.array([letters.index(cell) for cell in cells], np.int64)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
