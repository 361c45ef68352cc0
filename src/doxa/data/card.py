"""What is known of a data set before it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class File:
    """A file of a data set: its place in the data folder, where it is published, and how it is recognised.

    `instead` names other files that serve as well, each a tuple of all that are needed. Where the SHA-256 of the
    published file is not known it is None, and `check` raises BrokenFile on a file that does not hold what it should.
    """

    path: str
    url: str
    bytes: int
    sha256: str | None
    instead: tuple[tuple[str, ...], ...] = ()
    check: Callable[[Path], object] | None = None


@dataclass(frozen=True)
class Card:
    """A data set in words and figures; a set without files is generated, or comes with a library.

    rows: of all parts together;  shape: of one row;  task: "classification", "regression" or "time series"
    """

    name: str
    description: str
    rows: int
    shape: tuple[int, ...]
    task: str
    licence: str
    citation: str
    home: str
    files: tuple[File, ...] = ()
    note: str = ""

    @property
    def bytes(self) -> int:
        """The size on disk of the files as they are published."""
        return sum(file.bytes for file in self.files)
