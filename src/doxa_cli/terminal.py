"""What reaches the terminal: results on stdout, notes on stderr, text from elsewhere made harmless."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from doxa_cli.streams import silence

if TYPE_CHECKING:
    from rich.console import Console

LONGEST = 40  # columns of a name in a table
NOTE_INTERVAL = 2.0  # seconds between two notes of one count
DIRECTION_MARKS = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}  # of the reading direction

Say = Callable[[object], None]


def printable(text: object) -> str:
    """Text as one line that no terminal obeys: control characters, halves of characters and turns as �."""
    line = " ".join(str(text).split())
    return "".join("�" if unicodedata.category(c) in ("Cc", "Cs") or c in DIRECTION_MARKS else c for c in line)


def truncated(text: object, longest: int = LONGEST) -> str:
    """The same, and no wider than so many columns of a terminal."""
    from rich.cells import cell_len, set_cell_size

    line = printable(str(text)[: 4 * longest])
    if cell_len(line) <= longest and len(str(text)) <= 4 * longest:
        return line
    return set_cell_size(line, min(cell_len(line), longest - 1)) + "…"


def note(text: object) -> None:
    """A line on stderr, beside the result; where nobody can hear it, the result counts all the same."""
    try:
        # In one stroke: between the words and the end of their line Ctrl-C would put its own words beside them.
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        silence(sys.stderr)


def note_printer(quiet: bool) -> Say:
    """How a command speaks beside its result: in notes, or not at all."""
    return _nothing if quiet else note


def _nothing(text: object) -> None:
    pass


def throttled(say: Say, since: float | None = None) -> Say:
    """The same voice, at most every two seconds and not in the first two; from now, unless a time is given."""
    last = time.monotonic() if since is None else since

    def say_if_due(text: object) -> None:
        nonlocal last
        if time.monotonic() - last >= NOTE_INTERVAL:
            last = time.monotonic()
            say(text)

    return say_if_due


def row_count_printer(say: Say) -> Callable[[int], None]:
    """Hears how many rows of a file have been read; says the first number at once, then one every two seconds."""
    progress = throttled(say, since=-NOTE_INTERVAL)
    return lambda rows: progress(f"read {rows:,} rows")


def print_line(text: object = "") -> None:
    """A line on stdout: harmless on a terminal, exact in a file or a pipe."""
    print(printable(text) if sys.stdout.isatty() else text)


def print_paragraph(text: object, first: str = "", rest: str = "  ") -> None:
    """Words on stdout, wrapped to the width of the terminal."""
    width = max(20, shutil.get_terminal_size().columns)
    print(textwrap.fill(printable(text), width, initial_indent=first, subsequent_indent=rest))


def print_json(value: Any) -> None:
    """A value as JSON on stdout; ASCII alone, so that no name in it reaches the terminal raw."""
    from doxa.results import to_plain_json

    print(json.dumps(to_plain_json(value), allow_nan=False))


def print_table(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout, its first column words and the others numbers; columns that do not fit are left out."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[truncated(cell) for cell in row] for row in rows]
    console = _console()
    column_count = _fitting_columns([headers, *cells], console.width)
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column_index, head in enumerate(headers[:column_count]):
        grid.add_column(Text(head), justify="right" if column_index else "left", no_wrap=True, overflow="ellipsis")
    for row in cells:
        grid.add_row(*(Text(cell) for cell in row[:column_count]))
    print_paragraph(title, rest="")
    console.print(grid)
    if column_count < len(headers):
        print_paragraph(f"Not shown in {console.width} columns: {', '.join(headers[column_count:])}.", rest="")


def print_pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Names and what is to be said of each, on stdout."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(Text(name), Text(printable(text)))
    _console().print(grid)


def _fitting_columns(rows: Sequence[Sequence[str]], width: int) -> int:
    """How many columns, at least two, stand side by side."""
    from rich.cells import cell_len

    used_width = 0
    for column in range(len(rows[0])):
        used_width += max(cell_len(row[column]) for row in rows) + (3 if column else 0)
        if used_width > width and column >= 2:
            return column
    return len(rows[0])


def _console() -> Console:
    from rich.console import Console

    class Plain(Console):
        """What is printed is text, never markup; a reader who left is an error like any other."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(file=sys.stdout, markup=False, highlight=False, emoji=False)
