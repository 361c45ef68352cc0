"""Tables from text: comma, semicolon, tab or bar between the cells."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TextIO

import numpy as np

from doxa.errors import BadInput, shorten
from doxa.tables.columns import ColumnBuilder
from doxa.tables.table import Column, Numbers, Table

CHUNK, CHUNK_CELLS, CHUNK_CHARACTERS = 1_000, 4_000_000, 2**26  # rows at a time, and what they may hold
BLOCK, MAX_ROW = 2**16, 2**24  # characters
MAX_COLUMNS = 2**20  # each takes some hundred bytes, be it empty


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
            source = _Lines(path, file)
            lines = iter(source)
            blank, first = next(((n, line) for n, line in enumerate(lines) if line.strip("\ufeff \t\r\n")), (0, ""))
            if not first:
                raise BadInput(f"{path} is empty; expected a first line of column names and a row for each example")
            separator = delimiter(first)
            rows = csv.reader(chain([first.removeprefix("\ufeff")], lines), delimiter=separator, strict=True)
            return _parse_rows(source, rows, blank, separator != ",", say)
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


class _Lines:
    """The lines of a file, read in blocks; those of one row hold no more characters than a row may."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self.file = path, file
        self.characters = self.row_start = 0  # read of the file, and before the row that is being read

    def __iter__(self) -> Iterator[str]:
        rest, ends = "", 0
        while block := self.file.read(BLOCK):
            self.characters += len(block)
            self._require_text(block, ends)
            end = max(block.rfind("\n"), block.rfind("\r", 0, -1)) + 1  # a \r at its end may be half of \r\n
            if not end:
                rest += block
                continue
            yield from StringIO(rest + block[:end], newline="")
            rest, ends = block[end:], ends + block.count("\n")
        yield from StringIO(rest, newline="")

    def _require_text(self, block: str, ends: int) -> None:
        if self.characters - self.row_start > MAX_ROW:
            what = f"a row after line {ends:,}" if ends else "the first line"
            raise BadInput(
                f"{what} of {self.path} is longer than {MAX_ROW:,} characters; is it a table, and does every quotation "
                "mark have its other?"
            )
        if "\0" in block:
            line = ends + 1 + block.count("\n", 0, block.index("\0"))
            raise BadInput(
                f"{self.path} holds a NUL character in line {line:,}, which no text has; save it as UTF-8, or name its "
                "encoding, e.g. utf-16"
            )


def delimiter(line: str) -> str:
    """The one of , ; tab | that the first line has most of, outside of quotation marks."""
    outside = "".join(line.split('"')[::2])
    counts = Counter({mark: outside.count(mark) for mark in (",", ";", "\t", "|")})
    return counts.most_common(1)[0][0]


def _parse_rows(
    source: _Lines, rows: Iterator[list[str]], blank: int, comma: bool, say: Callable[[int], None]
) -> Table:
    path = source.path
    names = _column_names(path, next(rows))
    builders = [ColumnBuilder() for _ in names]
    rows_read = 0
    for chunk in _chunks(source, rows, blank, len(names)):
        for builder, cells in zip(builders, zip(*chunk, strict=True), strict=False):
            builder.add(cells)
        rows_read += len(chunk)
        say(rows_read)
    if not rows_read:
        raise BadInput(f"{path} names its columns but has no rows")
    columns = [builder.column(comma) for builder in builders]
    remarks = tuple(
        f"column {position + 1} has no name and {_why_left_out(path, column, position)}: it is left out"
        for position, (name, column) in enumerate(zip(names, columns, strict=True))
        if not name
    )
    named = {name: column for name, column in zip(names, columns, strict=True) if name}
    return Table(_name_of(path), named, remarks, comma)


def _column_names(path: Path, cells: list[str]) -> list[str]:
    names = [name.strip() for name in cells]
    if len(names) > MAX_COLUMNS:
        raise BadInput(f"{path} has {len(names):,} columns; at most {MAX_COLUMNS:,} can be read")
    duplicates = [name for name, count in Counter(names).items() if name and count > 1]
    if duplicates:
        raise BadInput(f"{path} has more than one column named {shorten(duplicates[0])!r}; give each a name of its own")
    return names


def _chunks(source: _Lines, rows: Iterator[list[str]], blank: int, width: int) -> Iterator[list[list[str]]]:
    """The rows, each of as many cells as there are columns, some at a time; blank ones are left out."""
    most_rows = max(1, min(CHUNK, CHUNK_CELLS // width))
    chunk: list[list[str]] = []
    chunk_start = source.characters
    for number, row in enumerate(rows, blank + 2):
        source.row_start = source.characters
        if len(row) != width:
            if not row:
                continue
            raise BadInput(f"row {number} of {source.path} has {len(row)} cells, its first line {width}")
        chunk.append(row)
        if len(chunk) == most_rows or source.characters - chunk_start > CHUNK_CHARACTERS:
            yield chunk
            chunk, chunk_start = [], source.characters
    if chunk:
        yield chunk


def _name_of(path: Path) -> str:
    """The name of a file as text, which the bytes of one need not be."""
    return path.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


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
