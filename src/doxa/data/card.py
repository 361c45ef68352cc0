"""What is known of a data set before it is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from doxa.errors import BadInput

SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class File:
    """A file of a data set: its place in the data folder, where it is published, and how it is recognised.

    bytes and sha256: of the file as it is published, without which nothing is fetched;  instead: names of other files
    that serve as well, each a tuple of all that are needed;  also: the SHA-256 of other forms of the same content;
    verify_together: raises BrokenFile unless several files that serve instead hold what they should
    """

    path: str
    url: str
    bytes: int
    sha256: str
    instead: tuple[tuple[str, ...], ...] = ()
    also: tuple[str, ...] = ()
    verify_together: Callable[[list[Path]], None] | None = None

    def __post_init__(self) -> None:
        for digest in (self.sha256, *self.also):
            if not isinstance(digest, str) or not SHA256.fullmatch(digest):
                raise BadInput(f"{self.path} needs its SHA-256, 64 hexadecimal digits in lower case; got {digest!r}")

    @property
    def digests(self) -> frozenset[str]:
        """Every SHA-256 by which the file is known to hold what it should."""
        return frozenset((self.sha256, *self.also))


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
