"""A table from whatever holds one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from doxa.errors import BadInput, shorten
from doxa.storage.source import require_readable
from doxa.tables.columns import words_as_numbers
from doxa.tables.csv import MAX_COLUMNS, read_csv
from doxa.tables.forms import DATE, DAY, DURATION, NUMBER, days_since_epoch
from doxa.tables.table import EXACT, Column, Numbers, Table, Words

MAX_CELLS = 2**31  # of a parquet file: as numbers 16 GiB, beside which nothing could be learned from them in 24


def read(source: Any, encoding: str = "utf-8", say: Callable[[int], None] = lambda rows: None) -> Table:
    """The table in a CSV or parquet file, a pandas DataFrame, or a mapping from names to columns."""
    if isinstance(source, Table):
        return source
    if isinstance(source, str | PathLike):
        return _from_file(Path(source), encoding, say)
    if hasattr(source, "columns") and hasattr(source, "dtypes"):
        return from_frame(source)
    if isinstance(source, Mapping):
        columns = {str(name): column_from_array(np.asarray(values)) for name, values in source.items()}
        lengths = {len(c) for c in columns.values()}
        if len(lengths) != 1 or lengths == {0}:
            raise BadInput(f"the columns of a table must have one length, above 0; got {sorted(lengths)}")
        return Table("the table", columns)
    raise BadInput(
        f"a table is a CSV or parquet file, a pandas DataFrame or a mapping of columns; got {type(source).__name__}"
    )


def from_frame(frame: Any, name: str = "the table") -> Table:
    """A pandas DataFrame as a table; dates count in days since 1970, durations in days."""
    columns: dict[str, Column] = {}
    for label in frame.columns:
        series = frame[label]
        if getattr(series, "ndim", 1) != 1:
            raise BadInput(f"{name} has more than one column named {label!r}; give each a name of its own")
        columns[str(label)] = _from_series(series)
    if not columns or not len(frame):
        raise BadInput(f"{name} is empty; expected columns with names and a row for each example")
    return Table(name, columns)


def _from_series(series: Any) -> Column:
    kind = series.dtype.kind
    if kind == "M":
        return column_from_array(series.to_numpy(dtype="datetime64[us]", na_value=np.datetime64("NaT")))
    if kind == "m":
        return column_from_array(series.to_numpy(dtype="timedelta64[us]", na_value=np.timedelta64("NaT")))
    if kind in "iu" and not series.isna().any():
        return column_from_array(series.to_numpy(dtype=f"{kind}8"))
    if kind == "f":
        return Numbers(series.to_numpy(dtype=np.float64, na_value=np.nan))
    objects = series.astype(object).where(series.notna(), None).tolist()
    return _words_from_objects(objects) if str(series.dtype) == "category" else column_from_objects(objects)


def column_from_array(values: np.ndarray[Any, Any]) -> Column:
    """An array [N] as a column."""
    if values.ndim != 1:
        raise BadInput(f"a column must have one axis, got shape {values.shape}")
    kind = values.dtype.kind
    if kind in "Mm":
        ticks = values.astype(f"{kind}8[us]").astype(np.int64)
        days = np.where(np.isnat(values), np.nan, ticks / 86_400e6)
        return Numbers(days, DATE if kind == "M" else DURATION)
    if kind in "iu":
        return _whole_numbers(values)
    return Numbers(values.astype(np.float64)) if kind == "f" else column_from_objects(values.tolist())


def column_from_objects(cells: list[Any]) -> Column:
    """Whatever Python objects a column holds: numbers, dates, durations, or else words."""
    present = [c for c in cells if not _is_missing(c)]
    if present and all(isinstance(c, Integral) and not isinstance(c, bool) for c in present):
        return _whole_numbers(np.array([np.nan if _is_missing(c) else c for c in cells], object))
    for kind, to_number, form in NUMBER_TYPES:
        if present and all(isinstance(c, kind) and not isinstance(c, bool | np.bool_) for c in present):
            return Numbers(np.array([np.nan if _is_missing(c) else to_number(c) for c in cells], np.float64), form)
    words = _words_from_objects(cells)
    return (words_as_numbers(words, DATE) or words) if present and all(isinstance(c, str) for c in present) else words


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


# What Python writes numbers with, how each becomes one, and the form that the column then has.
NUMBER_TYPES: tuple[tuple[Any, Callable[[Any], float], str], ...] = (
    ((int, float, np.integer, np.floating, Decimal), _float, NUMBER),
    (date, days_since_epoch, DATE),
    (timedelta, lambda value: value / DAY, DURATION),
)


def _whole_numbers(values: np.ndarray[Any, Any]) -> Numbers:
    """Whole numbers; those that a float cannot tell from their neighbours keep their digits."""
    floats = np.array([_float(v) for v in values]) if values.dtype == object else values.astype(np.float64)
    large = bool((np.abs(floats) > EXACT).any())
    return Numbers(floats, NUMBER, values.astype(str).astype("S") if large else None)


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and np.isnan(cell)) or (isinstance(cell, Decimal) and cell.is_nan())


def _words_from_objects(cells: list[Any]) -> Words:
    index: dict[str, int] = {}
    codes = [-1 if _is_missing(c) else index.setdefault(str(c), len(index)) for c in cells]
    return Words(np.array(codes, np.int64), tuple(index))


def _from_file(path: Path, encoding: str, say: Callable[[int], None]) -> Table:
    require_readable(path, "a CSV or parquet file")
    try:
        if path.suffix in (".parquet", ".pq"):
            return _from_parquet(path)
        return read_csv(path, encoding, say)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None


def _from_parquet(path: Path) -> Table:
    try:
        import pandas
    except ImportError:
        raise BadInput(f"reading {path} needs pandas and pyarrow: pip install pandas pyarrow") from None
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise BadInput(f"reading {path} needs pyarrow: pip install pyarrow") from None
    try:
        with ParquetFile(path) as file:
            _require_bounded(path, file.metadata)
        frame = pandas.read_parquet(path, engine="pyarrow")
    except BadInput:
        raise
    except Exception as error:  # a damaged file has its reader fail in any way
        raise BadInput(f"{path} cannot be read as parquet: {shorten(str(error), 200)}") from None
    return from_frame(frame, path.name)


def _require_bounded(path: Path, metadata: Any) -> None:
    """Refuse what would fill the memory, however small a file it is packed into."""
    groups = sum(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    rows, columns = max(metadata.num_rows, groups), metadata.num_columns
    if columns > MAX_COLUMNS:
        raise BadInput(f"{path} has {columns:,} columns; at most {MAX_COLUMNS:,} can be read")
    if rows * columns > MAX_CELLS:
        raise BadInput(
            f"{path} has {rows:,} rows of {columns:,} columns, more than the {MAX_CELLS:,} cells that can be read; "
            "split it into smaller files, or leave out columns"
        )
