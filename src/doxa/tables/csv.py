"""Tables from text: comma, semicolon, tab or bar between the cells."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from os import PathLike
from pathlib import Path

import numpy as np

from doxa.errors import BadInput
from doxa.tables.columns import ColumnBuilder
from doxa.tables.table import Column, Numbers, Table

CHUNK = 5_000  # rows


def read_csv(
    path: str | PathLike[str], encoding: str = "utf-8", say: Callable[[int], None] = lambda rows: None
) -> Table:
    """The table in a text file whose first line names the columns; `say` hears how many rows have been read.

    Blank lines are skipped, and a column without a name that is empty or numbers the rows.
    """
    path = Path(path)
    codec = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding  # a byte-order mark is no letter
    try:
        with open(path, newline="", encoding=codec) as file:
            lines = iter(file)
            blank, first = next(((n, line) for n, line in enumerate(lines) if line.strip("\ufeff \t\r\n")), (0, ""))
            if not first:
                raise BadInput(f"{path} is empty; expected a first line of column names and a row for each example")
            separator = delimiter(first)
            rows = csv.reader(chain([first.removeprefix("\ufeff")], lines), delimiter=separator, strict=True)
            return _parse_rows(path, rows, blank, separator != ",", say)
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path} is not {encoding} text: byte {error.object[error.start]:#04x} cannot be read; save it as UTF-8, "
            f"or name its encoding, e.g. latin-1 or utf-16"
        ) from None
    except UnicodeError as error:
        raise BadInput(
            f"{path} is not {encoding} text: {error}; save it as UTF-8, or name its encoding, e.g. utf-16-le"
        ) from None
    except LookupError:
        raise BadInput(f"{encoding!r} is no encoding; try utf-8, latin-1 or utf-16") from None
    except csv.Error as error:
        raise BadInput(f"{path} cannot be read as a table: {error}; check its quotation marks") from None


def delimiter(line: str) -> str:
    """The one of , ; tab | that the first line has most of, outside of quotation marks."""
    outside = "".join(line.split('"')[::2])
    counts = Counter({mark: outside.count(mark) for mark in (",", ";", "\t", "|")})
    return counts.most_common(1)[0][0]


def _parse_rows(path: Path, lines: Iterator[list[str]], blank: int, comma: bool, say: Callable[[int], None]) -> Table:
    names = [name.strip() for name in next(lines)]
    duplicates = [name for name, count in Counter(names).items() if name and count > 1]
    if duplicates:
        raise BadInput(f"{path} has more than one column named {duplicates[0]!r}; give each a name of its own")
    builders = [ColumnBuilder() for _ in names]
    lines_read = rows = 0
    while chunk := list(islice(lines, CHUNK)):
        filled = [row for row in chunk if row]
        if any(len(row) != len(names) for row in filled):
            number, row = next(
                (n, r) for n, r in enumerate(chunk, blank + lines_read + 2) if r and len(r) != len(names)
            )
            raise BadInput(f"row {number} of {path} has {len(row)} cells, its first line {len(names)}")
        for builder, cells in zip(builders, zip(*filled, strict=True), strict=False):
            builder.add(cells)
        lines_read, rows = lines_read + len(chunk), rows + len(filled)
        say(rows)
    if not rows:
        raise BadInput(f"{path} names its columns but has no rows")
    columns = [builder.column(comma) for builder in builders]
    remarks = tuple(
        f"column {position + 1} has no name and {_why_left_out(path, column, position)}: it is left out"
        for position, (name, column) in enumerate(zip(names, columns, strict=True))
        if not name
    )
    named = {name: column for name, column in zip(names, columns, strict=True) if name}
    return Table(path.name, named, remarks, comma)


def _why_left_out(path: Path, column: Column, position: int) -> str:
    """Why a column without a name can be left out; an error where it cannot."""
    if column.missing.all():
        return "is empty"
    # What pandas writes first: 0, 1, 2 …, or any numbers once each where rows were chosen.
    if isinstance(column, Numbers) and column.distinct == len(column):
        all_whole = bool((column.values == np.round(column.values)).all())
        if all_whole and (position == 0 or (column.values == np.arange(len(column))).all()):
            return "numbers the rows"
    raise BadInput(f"column {position + 1} of {path} has no name; the first line must name every column")
