"""Files with a line for each day."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.data.files import broken
from doxa.data.formats.text import decoded


@dataclass(frozen=True)
class Columns:
    """The names of the columns that hold the day and its value, and what turns the value into °C."""

    day: str
    value: str
    celsius: Callable[[float], float] = float


@dataclass(frozen=True)
class Daily:
    """What a file of daily temperatures must hold, under the names of one of `forms`: so many days, from first to last.

    Called with a path, it gives dates datetime64[D] [days] and °C float64 [days], or an error that names the line.
    """

    forms: tuple[Columns, ...]
    first: str
    last: str
    days: int

    def __call__(self, path: Path) -> tuple[NDArray[np.datetime64], NDArray[np.float64]]:
        header, *lines = _lines(path) or [[]]
        form = next((form for form in self.forms if {form.day, form.value} <= set(header)), None)
        if form is None:
            wanted = " or ".join(f"{form.day} and {form.value}" for form in self.forms)
            raise broken(path, f"its first line names no columns {wanted}")
        rows = [_row(path, number, header, line, form) for number, line in enumerate(lines, 2)]
        dates = np.array([day for day, _ in rows], "datetime64[D]")
        self._check(path, dates)
        return dates, np.array([value for _, value in rows])

    def _check(self, path: Path, dates: NDArray[np.datetime64]) -> None:
        if len(dates) != self.days:
            raise broken(path, f"it has {len(dates)} days, expected {self.days}")
        if (str(dates[0]), str(dates[-1])) != (self.first, self.last) or (np.diff(dates).astype(int) <= 0).any():
            raise broken(
                path, f"its days run from {dates[0]} to {dates[-1]}, expected {self.first} to {self.last}, in order"
            )


def _lines(path: Path) -> list[list[str]]:
    try:
        return [line for line in csv.reader(decoded(path).splitlines()) if line]
    except csv.Error as error:
        raise broken(path, f"it is no CSV file ({error})") from error


def _row(path: Path, number: int, header: list[str], line: list[str], form: Columns) -> tuple[date, float]:
    if len(line) != len(header):
        raise broken(path, f"line {number} has {len(line)} columns, expected {len(header)}")
    cells = dict(zip(header, line, strict=True))
    try:
        day, value = date.fromisoformat(cells[form.day]), form.celsius(float(cells[form.value]))
    except ValueError as error:
        raise broken(path, f"line {number} holds no day and temperature ({error})") from error
    if not -90 < value < 60:  # the coldest and the hottest ever measured
        raise broken(path, f"line {number} holds {cells[form.value]}, expected a temperature")
    return day, value
