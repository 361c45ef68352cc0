"""Files with a line for each day."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.data.files import broken_file_error
from doxa.data.formats.text import read_text


@dataclass(frozen=True)
class ColumnNames:
    """The names of the columns that hold the day and its value, and what turns the value into °C."""

    day: str
    value: str
    celsius: Callable[[float], float] = float


@dataclass(frozen=True)
class DailyFormat:
    """What a file of daily temperatures must hold, under the names of one of `forms`: so many days, from first to last.

    Called with a path, it gives dates datetime64[D] [days] and °C float64 [days], or an error that names the line.
    """

    forms: tuple[ColumnNames, ...]
    first: str
    last: str
    days: int

    def __call__(self, path: Path) -> tuple[NDArray[np.datetime64], NDArray[np.float64]]:
        header, *lines = _read_lines(path) or [[]]
        column_names = next(
            (column_names for column_names in self.forms if {column_names.day, column_names.value} <= set(header)), None
        )
        if column_names is None:
            expected_columns = " or ".join(
                f"{column_names.day} and {column_names.value}" for column_names in self.forms
            )
            raise broken_file_error(path, f"its first line names no columns {expected_columns}")
        rows = [_parse_row(path, number, header, line, column_names) for number, line in enumerate(lines, 2)]
        dates = np.array([day for day, _ in rows], "datetime64[D]")
        self._check(path, dates)
        return dates, np.array([value for _, value in rows])

    def _check(self, path: Path, dates: NDArray[np.datetime64]) -> None:
        if len(dates) != self.days:
            raise broken_file_error(path, f"it has {len(dates)} days, expected {self.days}")
        if (str(dates[0]), str(dates[-1])) != (self.first, self.last) or (np.diff(dates).astype(int) <= 0).any():
            raise broken_file_error(
                path, f"its days run from {dates[0]} to {dates[-1]}, expected {self.first} to {self.last}, in order"
            )


def _read_lines(path: Path) -> list[list[str]]:
    try:
        return [line for line in csv.reader(read_text(path).splitlines()) if line]
    except csv.Error as error:
        raise broken_file_error(path, f"it is no CSV file ({error})") from error


def _parse_row(
    path: Path, number: int, header: list[str], line: list[str], column_names: ColumnNames
) -> tuple[date, float]:
    if len(line) != len(header):
        raise broken_file_error(path, f"line {number} has {len(line)} columns, expected {len(header)}")
    cells = dict(zip(header, line, strict=True))
    try:
        day, value = date.fromisoformat(cells[column_names.day]), column_names.celsius(float(cells[column_names.value]))
    except ValueError as error:
        raise broken_file_error(path, f"line {number} holds no day and temperature ({error})") from error
    if not -90 < value < 60:  # the coldest and the hottest ever measured
        raise broken_file_error(path, f"line {number} holds {cells[column_names.value]}, expected a temperature")
    return day, value
