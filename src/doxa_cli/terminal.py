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

if TYPE_CHECKING:
    from rich.console import Console

LONGEST = 40  # columns of a name in a table
EVERY = 2.0  # seconds between two notes of one count
TURNS = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}  # of the reading direction

Say = Callable[[object], None]


def printable(text: object) -> str:
    """Text as one line that no terminal obeys: control characters, halves of characters and turns as �."""
    line = " ".join(str(text).split())
    return "".join("�" if unicodedata.category(c) in ("Cc", "Cs") or c in TURNS else c for c in line)


def cut(text: object, longest: int = LONGEST) -> str:
    """The same, and no wider than so many columns of a terminal."""
    from rich.cells import cell_len, set_cell_size

    line = printable(str(text)[: 4 * longest])
    if cell_len(line) <= longest and len(str(text)) <= 4 * longest:
        return line
    return set_cell_size(line, min(cell_len(line), longest - 1)) + "…"


def note(words: object) -> None:
    """A line on stderr, beside the result."""
    # In one stroke: between the words and the end of their line Ctrl-C would put its own words beside them.
    sys.stderr.write(f"{printable(words)}\n")
    sys.stderr.flush()


def notes(quiet: bool) -> Say:
    """How a command speaks beside its result: in notes, or not at all."""
    return _nothing if quiet else note


def _nothing(words: object) -> None:
    pass


def seldom(say: Say, since: float | None = None) -> Say:
    """The same voice, at most every two seconds and not in the first two; from now, unless a time is given."""
    last = time.monotonic() if since is None else since

    def said(words: object) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            say(words)

    return said


def reading(say: Say) -> Callable[[int], None]:
    """Hears how many rows of a file have been read; says the first number at once, then one every two seconds."""
    said = seldom(say, since=-EVERY)
    return lambda rows: said(f"read {rows:,} rows")


def put(text: object = "") -> None:
    """A line on stdout: harmless on a terminal, exact in a file or a pipe."""
    print(printable(text) if sys.stdout.isatty() else text)


def paragraph(words: object, first: str = "", rest: str = "  ") -> None:
    """Words on stdout, wrapped to the width of the terminal."""
    width = max(20, shutil.get_terminal_size().columns)
    print(textwrap.fill(printable(words), width, initial_indent=first, subsequent_indent=rest))


def put_json(value: Any) -> None:
    """A value as JSON on stdout; ASCII alone, so that no name in it reaches the terminal raw."""
    from doxa.results import plain

    print(json.dumps(plain(value), allow_nan=False))


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout, its first column words and the others numbers; columns that do not fit are left out."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[cut(cell) for cell in row] for row in rows]
    console = _console()
    fitting = _fitting([heads, *cells], console.width)
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, head in enumerate(heads[:fitting]):
        shown.add_column(Text(head), justify="right" if place else "left", no_wrap=True, overflow="ellipsis")
    for row in cells:
        shown.add_row(*(Text(cell) for cell in row[:fitting]))
    paragraph(title, rest="")
    console.print(shown)
    if fitting < len(heads):
        paragraph(f"Not shown in {console.width} columns: {', '.join(heads[fitting:])}.", rest="")


def pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Names and what is to be said of each, on stdout."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, words in rows:
        grid.add_row(Text(name), Text(printable(words)))
    _console().print(grid)


def _fitting(rows: Sequence[Sequence[str]], width: int) -> int:
    """How many columns, at least two, stand side by side."""
    from rich.cells import cell_len

    used = 0
    for place in range(len(rows[0])):
        used += max(cell_len(row[place]) for row in rows) + (3 if place else 0)
        if used > width and place >= 2:
            return place
    return len(rows[0])


def _console() -> Console:
    from rich.console import Console

    class Plain(Console):
        """What is printed is text, never markup; a reader who left is an error like any other."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(file=sys.stdout, markup=False, highlight=False, emoji=False)
