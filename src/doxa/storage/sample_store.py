"""Rows of numbers on disk: appended, never changed, and read a few at a time."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from doxa.errors import BadInput, BrokenFile, require_whole
from doxa.storage.reading import CHUNK, open_file, read_span
from doxa.storage.rows import JoinedRows, require_within, segment_rows
from doxa.storage.sealed_rows import SealedRows
from doxa.storage.store_format import CHECKSUM, SEAL, START, StoreFormat, parse_header


@dataclass(frozen=True)
class SampleStore:
    """An append-only file of rows, each with a checksum, sealed in segments: what a sampler keeps its states in.

    A row that was damaged is refused when it is read, and so is one of a full segment that does not match its SHA-256,
    which is taken once: then the segment is `verified`. What a killed append leaves behind its last whole row is
    `torn`: it counts for nothing, and `truncate` cuts it off. Nothing is held open or mapped between calls, so that
    only rows just read are in memory. With a `count`, the store is read as it stood when it had so many rows.
    """

    path: Path
    format: StoreFormat
    count: int | None = None
    verified: set[int] = field(default_factory=set, compare=False, repr=False)

    @classmethod
    def create(
        cls, path: str | PathLike[str], columns: int, dtype: torch.dtype = torch.float32, replace: bool = False
    ) -> SampleStore:
        """A new store without rows; with `replace`, in the place of whatever has its name."""
        columns = require_whole("columns", columns)
        store_format = StoreFormat(columns, dtype, secrets.token_bytes(8), segment_rows(columns, dtype))
        header = store_format.header()
        store = cls(Path(path).absolute(), store_format)
        try:
            store.path.parent.mkdir(parents=True, exist_ok=True)
            if replace:
                store.path.unlink(missing_ok=True)
            with open(store.path, "xb", buffering=0) as file:
                _write_all(file, header)
                os.fsync(file.fileno())
        except FileExistsError:
            raise BadInput(f"{path} exists already; open it with SampleStore.open, or choose another name") from None
        except OSError as error:
            with suppress(OSError):
                store.path.unlink()
            raise BrokenFile(f"could not write {path}: {error.strerror or error}") from error
        return store

    @classmethod
    def open(cls, path: str | PathLike[str]) -> SampleStore:
        """The store in a file."""
        with open_file(path, "a store of rows") as file:
            header = file.read(START)
        return cls(Path(path).absolute(), parse_header(Path(path), header))

    @property
    def columns(self) -> int:
        return self.format.columns

    @property
    def dtype(self) -> torch.dtype:
        return self.format.dtype

    def __len__(self) -> int:
        """Whole rows."""
        return self.format.rows_within(self._file_size()) if self.count is None else self.count

    @property
    def torn(self) -> bool:
        """Whether the file ends in the middle of a row, or of a seal."""
        size = self._file_size()
        return size != self.format.start_of(self.format.rows_within(size))

    def snapshot(self) -> SampleStore:
        """The rows that there are now, whatever is appended later."""
        return replace(self, count=len(self))

    def append(self, rows: Tensor) -> None:
        """Put rows [n, columns] behind the last one; they are on the disk when this returns."""
        if rows.dim() != 2 or rows.shape[1] != self.columns or rows.dtype != self.dtype:
            raise BadInput(
                f"rows are {rows.dtype} of shape {tuple(rows.shape)}; {self.path} takes {self.dtype} of shape "
                f"(n, {self.columns})"
            )
        if self.count is not None:
            raise BadInput(f"{self.path} is read as it stood with {self.count} rows; append to the store itself")
        if self.torn:
            raise BrokenFile(f"{self.path} ends in the middle of a row; truncate it to the rows to keep first")
        number, end = len(self), self._file_size()
        with self._open_checked("r+b") as file:
            try:
                file.seek(end)
                pending = bytearray()
                for part in self._encode(file, number, rows.detach().cpu().contiguous().view(torch.uint8)):
                    pending += part
                    if len(pending) >= CHUNK:
                        _write_all(file, pending)
                        pending.clear()
                _write_all(file, pending)
                os.fsync(file.fileno())
            except OSError as error:
                with suppress(OSError):
                    file.truncate(end)
                if isinstance(error, BrokenFile):
                    raise
                raise BrokenFile(f"could not append to {self.path}: {error.strerror or error}") from error

    def _encode(self, file: IO[bytes], number: int, content: Tensor) -> Iterator[bytes | memoryview]:
        """Rows from a number on with their checksums, and a seal behind every segment that they fill."""
        segment, stop = self.format.segment or 0, number + len(content)
        digest = None
        for k, row in enumerate(content.numpy(), number):
            if segment and digest is None and k - k % segment + segment <= stop:
                digest = _digest(self._link(file, k - k % segment), self._records(file, k - k % segment, k))
            for part in (row.data, self.format.checksum(k, row.data)):
                yield part
                if digest is not None:
                    digest.update(part)
            if digest is not None and (k + 1) % segment == 0:
                seal = digest.digest()
                yield seal
                digest = hashlib.sha256(seal) if k + 1 + segment <= stop else None

    def truncate(self, count: int) -> None:
        """Keep the first `count` rows, the last of them checked, and nothing behind them."""
        count, row_count = require_whole("count", count, 0), len(self)
        if count > row_count:
            raise BrokenFile(
                f"{self.path} holds {row_count} rows, but {count} are to be kept: it is cut short, or not the store "
                "that belongs here"
            )
        with self._open_checked("r+b") as file:
            seal = self._seal_before(file, count)
            try:
                file.seek(self.format.start_of(count) - len(seal))
                _write_all(file, seal)
                file.truncate(self.format.start_of(count))
                os.fsync(file.fileno())
            except OSError as error:
                raise BrokenFile(f"could not truncate {self.path}: {error.strerror or error}") from error
        self.verified.intersection_update(range(count // (self.format.segment or 1)))

    def read(self, start: int, stop: int) -> Tensor:
        """Rows `start` to `stop` in fresh memory, each checked."""
        require_within(start, stop, len(self))
        segment = self.format.segment or max(1, stop)
        bounds = [start, *range(start - start % segment + segment, stop, segment), stop]
        with self._open_checked("rb") as file:
            parts = [self._read(file, first, last) for first, last in pairwise(bounds)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _read(self, file: IO[bytes], start: int, stop: int) -> Tensor:
        """Rows of one segment; the whole of it is read, if it is full and was never verified."""
        segment, first = self.format.segment, start
        number = start // segment if segment else 0
        if segment and number not in self.verified and number < self.format.sealed_segments(_size(file)):
            first = number * segment
            records = self._records(file, first, first + segment)
            if _digest(self._link(file, first), records).digest() != self._link(file, first + segment):
                raise self._damaged(first, first + segment)
            self.verified.add(number)
        else:
            records = self._records(file, start, stop)
        rows = records[start - first : stop - first, : -CHECKSUM.size]
        return rows.clone(memory_format=torch.contiguous_format).view(self.dtype)

    def _records(self, file: IO[bytes], start: int, stop: int) -> Tensor:
        """Rows of one segment with their checksums, which were compared, as bytes [stop − start, ·]."""
        size = self.format.row_size
        raw = read_span(file, self.path, self.format.start_of(start), (stop - start) * size)
        records = raw.view(stop - start, size)
        for k, record in enumerate(records.numpy(), start):
            if record[-CHECKSUM.size :].tobytes() != self.format.checksum(k, record[: -CHECKSUM.size].data):
                raise BrokenFile(
                    f"row {k} of {self.path} is damaged: it does not match its checksum; restore the file from a copy"
                )
        return records

    def _link(self, file: IO[bytes], first: int) -> bytes:
        """What the seal of the segment that begins with a row begins with: the seal before it, or the header."""
        if first == 0:
            return self.format.header()
        return read_span(file, self.path, self.format.start_of(first) - SEAL, SEAL).numpy().tobytes()

    def _seal_before(self, file: IO[bytes], count: int) -> bytes:
        """The seal behind the first `count` rows, if they fill a segment: what an append that was killed may have left
        out, but may not have written otherwise. The last row is checked.
        """
        segment = self.format.segment
        if not count:
            return b""
        if segment is None or count % segment:
            self._records(file, count - 1, count)
            return b""
        first = count - segment
        seal = _digest(self._link(file, first), self._records(file, first, count)).digest()
        if count // segment <= self.format.sealed_segments(_size(file)) and self._link(file, count) != seal:
            raise self._damaged(first, count)
        return seal

    def _damaged(self, start: int, stop: int) -> BrokenFile:
        return BrokenFile(
            f"rows {start} to {stop - 1} of {self.path} are damaged: they do not match their SHA-256; restore the file "
            "from a copy"
        )

    def _file_size(self) -> int:
        try:
            return max(START, self.path.stat().st_size)
        except OSError as error:
            raise BrokenFile(f"{self.path} cannot be read: {error.strerror or error}") from None

    def _open_checked(self, mode: str) -> IO[bytes]:
        """The file, if it is still this store."""
        try:
            # Without a buffer, which would be written after all when an append had failed.
            file = open(self.path, mode, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise BrokenFile(f"{self.path} cannot be opened: {error.strerror or error}") from None
        try:
            same = parse_header(self.path, file.read(START)) == self.format
        except BrokenFile:
            same = False
        if not same:
            file.close()
            raise BrokenFile(f"{self.path} is no longer the store that was opened: another file is in its place")
        return file


ROW_SOURCES = (SampleStore, SealedRows, JoinedRows)


def _digest(link: bytes, records: Tensor) -> hashlib._Hash:
    """The SHA-256 that becomes a segment's seal, as far as these records of it."""
    digest = hashlib.sha256(link)
    digest.update(records.numpy().data)
    return digest


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _write_all(file: IO[bytes], content: bytes | bytearray) -> None:
    """Write to a file without a buffer, however little it takes at a time."""
    with memoryview(content) as view:
        bytes_done = 0
        while bytes_done < len(view):
            bytes_done += file.write(view[bytes_done:])
