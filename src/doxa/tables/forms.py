"""The ways in which text writes numbers: plainly, with commas, as dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

NUMBER, COMMA, THOUSANDS, DATE, DURATION = "number", "decimal comma", "thousands", "date", "duration"
WORD, CODE = "word", "code"

DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1)

_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+|(?=,\d))(,\d*)?([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?\s?(Z|[+-]\d\d(:?\d\d)?)?)?")


def parse_plain(text: str) -> float | None:
    """1234.5"""
    try:
        return float(text)
    except ValueError:
        return None


def parse_decimal_comma(text: str) -> float | None:
    """1.234,5"""
    return float(text.replace(".", "").replace(",", ".")) if _COMMA.fullmatch(text) else None


def parse_thousands(text: str) -> float | None:
    """1,234.5"""
    return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) else parse_plain(text)


def parse_iso_date(text: str) -> float | None:
    """2024-01-31 or 2024-01-31T12:00:00Z, as days since 1970; a time without a zone is one of UTC."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return days_since_epoch(datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", "")))
    except (ValueError, OverflowError):
        return None


def days_since_epoch(when: date) -> float:
    """A date, or a date and time, as days since 1970."""
    if not isinstance(when, datetime):
        return float((when - EPOCH.date()).days)
    utc = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    return (utc - EPOCH) / DAY


def format_day(count: float) -> str:
    """Days since 1970 as a date, with its time where there is one."""
    try:
        when = EPOCH + timedelta(days=count)
    except OverflowError:  # beyond the years 1 to 9999
        return f"{count:.15g}"
    return when.date().isoformat() if when == datetime(*when.timetuple()[:3]) else when.isoformat()


PARSERS: dict[str, Callable[[str], float | None]] = {
    NUMBER: parse_plain,
    COMMA: parse_decimal_comma,
    THOUSANDS: parse_thousands,
    DATE: parse_iso_date,
}


def parse_numbers(texts: Iterable[str], form: str) -> NDArray[np.float64] | None:
    """The numbers that texts write in one form; None where one of them does not."""
    values = []
    for text in texts:
        value = PARSERS[form](text) if form in PARSERS else None
        if value is None:
            return None
        values.append(value)
    return np.array(values, np.float64)


# What was assumed of columns in each form, to be said after their names.
FORM_NOTES = {
    COMMA: "written with decimal commas: 1,5 is read as 1.5",
    THOUSANDS: "written with thousands separators: 1,500 is read as 1500",
    DATE: "dates: counted in days since 1970",
    DURATION: "durations: counted in days",
    CODE: "digits with leading zeros: taken as words",
}
