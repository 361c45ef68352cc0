"""A table from whatever holds one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from doxa.errors import BadInput
from doxa.tables.csv import read_csv
from doxa.tables.table import Column, Numbers, Table, Words


def read(source: Any, encoding: str = "utf-8", say: Callable[[int], None] = lambda rows: None) -> Table:
    """The table in a CSV or parquet file, a pandas DataFrame, or a mapping from names to columns."""
    if isinstance(source, Table):
        return source
    if isinstance(source, str | PathLike):
        return _from_file(Path(source), encoding, say)
    if hasattr(source, "columns") and hasattr(source, "dtypes"):
        return from_frame(source)
    if isinstance(source, Mapping):
        columns = {str(name): column_of(np.asarray(values)) for name, values in source.items()}
        lengths = {len(c) for c in columns.values()}
        if len(lengths) != 1 or lengths == {0}:
            raise BadInput(f"the columns of a table must have one length, above 0; got {sorted(lengths)}")
        return Table("the table", columns)
    raise BadInput(
        f"a table is a CSV or parquet file, a pandas DataFrame or a mapping of columns; got {type(source).__name__}"
    )


def from_frame(frame: Any, name: str = "the table") -> Table:
    """A pandas DataFrame as a table; dates count as numbers of days."""
    columns: dict[str, Column] = {}
    for label in frame.columns:
        series = frame[label]
        if getattr(series, "ndim", 1) != 1:
            raise BadInput(f"{name} has more than one column named {label!r}; give each a name of its own")
        if series.dtype.kind == "M":
            days = (series - series.min()).dt.total_seconds() / 86_400
            columns[str(label)] = Numbers(days.to_numpy(dtype=np.float64, na_value=np.nan))
        elif series.dtype.kind in "iuf":
            columns[str(label)] = Numbers(series.to_numpy(dtype=np.float64, na_value=np.nan))
        else:
            columns[str(label)] = _words(series.astype(object).where(series.notna(), None).tolist())
    if not columns or not len(frame):
        raise BadInput(f"{name} is empty; expected columns with names and a row for each example")
    return Table(name, columns)


def column_of(values: np.ndarray[Any, Any]) -> Column:
    """An array [N] as a column."""
    if values.ndim != 1:
        raise BadInput(f"a column must have one axis, got shape {values.shape}")
    if values.dtype.kind in "iuf":
        return Numbers(values.astype(np.float64))
    return _words(values.tolist())


def _words(cells: list[Any]) -> Column:
    index: dict[str, int] = {}
    gone = [c is None or (isinstance(c, float) and np.isnan(c)) for c in cells]
    codes = [-1 if g else index.setdefault(str(c), len(index)) for c, g in zip(cells, gone, strict=True)]
    return Words(np.array(codes, np.int64), tuple(index))


def _from_file(path: Path, encoding: str, say: Callable[[int], None]) -> Table:
    if path.is_dir():
        raise BadInput(f"{path} is a folder; expected a CSV or parquet file")
    if not path.exists():
        raise BadInput(f"there is no file {path}")
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
        frame = pandas.read_parquet(path)
    except ImportError:
        raise BadInput(f"reading {path} needs pyarrow: pip install pyarrow") from None
    except (ValueError, OSError) as error:
        raise BadInput(f"{path} cannot be read as parquet: {error}") from None
    return from_frame(frame, path.name)
