"""Rows inside a sealed file, each segment of them checked as it is first read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from doxa.errors import BadInput, BrokenFile
from doxa.storage import fields
from doxa.storage.reading import file_stamp, open_file, read_span
from doxa.storage.rows import NotFinite, SampleRows, are_finite, blocks, require_within, segment_rows


@dataclass(frozen=True)
class Seals:
    """SHA-256 of every segment of so many rows, the last of which may be short."""

    rows: int
    digests: tuple[str, ...]


def seal_segments(rows: SampleRows, finite: int = 0) -> Seals:
    """The seals of rows, which are read once for it; their first `finite` columns must be finite."""
    per_segment = segment_rows(rows.columns, rows.dtype)
    digests = []
    for start in range(0, len(rows), per_segment):
        content = rows.read(start, min(len(rows), start + per_segment))
        if not are_finite(content[:, :finite]):
            raise BadInput(f"samples {start} to {start + len(content) - 1} hold NaN or infinity; they cannot be saved")
        digests.append(hashlib.sha256(content.contiguous().reshape(-1).view(torch.uint8).numpy().data).hexdigest())
    return Seals(per_segment, tuple(digests))


def encode_seals(seals: Seals) -> dict[str, Any]:
    return {"rows": seals.rows, "sha256": list(seals.digests)}


def decode_seals(name: str, value: Any, count: int) -> Seals:
    """The way back, for so many rows; a ValueError names what no seals are."""
    entry = fields.mapping(name, value)
    rows = fields.whole(f"{name}.rows", entry.get("rows"), 1)
    digests = fields.items(f"{name}.sha256", entry.get("sha256"), count=-(-count // rows))
    return Seals(rows, tuple(fields.text(f"{name}.sha256[{i}]", digest) for i, digest in enumerate(digests)))


@dataclass(frozen=True)
class SealedRows:
    """Rows inside a file whose SHA-256 was checked as it was opened; `stamp` tells whether it is still that file.

    Where the file has `seals`, a segment is checked again as it is first read, however long after: a disk may have
    changed what no stamp tells of. Those that were found whole are `verified`. What is `not_finite` is known once the
    `content` was read; whether it may be so is for others to say: only they know weights from buffers.
    """

    path: Path
    start: int  # in bytes
    count: int
    columns: int
    dtype: torch.dtype
    stamp: tuple[int, ...]
    seals: Seals | None = None
    verified: set[int] = field(default_factory=set, compare=False, repr=False)
    not_finite: NotFinite = field(default_factory=NotFinite, compare=False, repr=False)

    def __len__(self) -> int:
        return self.count

    def read(self, start: int, stop: int) -> Tensor:
        """Rows `start` to `stop` in fresh memory."""
        require_within(start, stop, self.count)
        with self._open() as file:
            if self.seals is None or start == stop or self.verified.issuperset(self._segments(start, stop)):
                return self._read(file, start, stop)
            parts = [self._read_segment(file, segment, start, stop) for segment in self._segments(start, stop)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def content(self) -> Iterator[Tensor]:
        """All rows, a few at a time, as a seal over the whole file is taken of them: no other is looked at."""
        with self._open() as file:
            for start, stop in blocks(self):
                rows = self._read(file, start, stop)
                self.not_finite.note(rows)
                yield rows

    def _segments(self, start: int, stop: int) -> range:
        assert self.seals is not None
        return range(start // self.seals.rows, (stop - 1) // self.seals.rows + 1)

    def _read_segment(self, file: IO[bytes], segment: int, start: int, stop: int) -> Tensor:
        """What of rows `start` to `stop` is in a segment, if that is whole."""
        assert self.seals is not None
        first, last = segment * self.seals.rows, min(self.count, (segment + 1) * self.seals.rows)
        rows = self._read(file, first, last)
        if segment not in self.verified:
            if (
                hashlib.sha256(rows.reshape(-1).view(torch.uint8).numpy().data).hexdigest()
                != self.seals.digests[segment]
            ):
                raise BrokenFile(
                    f"{self.path} is damaged: rows {first} to {last - 1} of its samples do not match their SHA-256; "
                    "restore it from a copy"
                )
            self.verified.add(segment)
        return rows[max(0, start - first) : stop - first]

    def _read(self, file: IO[bytes], start: int, stop: int) -> Tensor:
        size = self.columns * self.dtype.itemsize
        raw = read_span(file, self.path, self.start + start * size, (stop - start) * size)
        return raw.view(self.dtype).view(stop - start, self.columns)

    def _open(self) -> IO[bytes]:
        """The file, if it is still the one that was opened."""
        if not os.path.exists(self.path):
            raise BrokenFile(
                f"{self.path} is gone, and the samples of the belief that was loaded from it with it; put it back, "
                "or save a belief elsewhere before its file is deleted"
            )
        file = open_file(self.path, "the belief that was loaded from it")
        if file_stamp(file) != self.stamp:
            file.close()
            raise BrokenFile(
                f"{self.path} was replaced or changed while a belief read its samples from it; load it again"
            )
        return file
