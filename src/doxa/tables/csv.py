"""Tables from text: comma, semicolon, tab or bar between the cells."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from os import PathLike
from pathlib import Path

from doxa.errors import BadInput
from doxa.tables.columns import Builder
from doxa.tables.table import Table

CHUNK = 5_000  # rows


def read_csv(
    path: str | PathLike[str], encoding: str = "utf-8", say: Callable[[int], None] = lambda rows: None
) -> Table:
    """The table in a text file whose first line names the columns; `say` hears how many rows have been read."""
    path = Path(path)
    known = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding  # a byte-order mark is no letter
    try:
        with open(path, newline="", encoding=known) as file:
            first = file.readline()
            if not first.strip():
                raise BadInput(f"{path} is empty; expected a first line of column names and a row for each example")
            file.seek(0)
            return _parsed(path, csv.reader(file, delimiter=delimiter(first), strict=True), say)
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path} is not {encoding} text: byte {error.object[error.start]:#04x} cannot be read; save it as UTF-8, "
            f"or name its encoding, e.g. latin-1 or utf-16"
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


def _parsed(path: Path, lines: Iterator[list[str]], say: Callable[[int], None]) -> Table:
    names = [name.strip() for name in next(lines)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BadInput(f"{path} has more than one column named {twice[0]!r}; give each a name of its own")
    if "" in names:
        raise BadInput(f"column {names.index('') + 1} of {path} has no name; the first line must name every column")
    columns = [Builder() for _ in names]
    rows = 0
    while chunk := list(islice(lines, CHUNK)):
        filled = [row for row in chunk if row]
        if any(len(row) != len(names) for row in filled):
            number, row = next((n, r) for n, r in enumerate(chunk, rows + 2) if r and len(r) != len(names))
            raise BadInput(f"row {number} of {path} has {len(row)} cells, its first line {len(names)}")
        for column, cells in zip(columns, zip(*filled, strict=True), strict=False):
            column.add(cells)
        rows += len(chunk)
        say(rows)
    if not rows:
        raise BadInput(f"{path} names its columns but has no rows")
    return Table(path.name, dict(zip(names, (column.column() for column in columns), strict=True)))
