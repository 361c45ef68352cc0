"""Rows of numbers on disk: appended, never changed, and read a few at a time."""

from __future__ import annotations

import os
import secrets
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from doxa.errors import BadInput, BrokenFile, require_whole
from doxa.storage.reading import read_span
from doxa.storage.rows import JoinedRows, require_within
from doxa.storage.sealed_rows import SealedRows

MAGIC, VERSION = b"doxarows", 1
HEADER = struct.Struct("<8sI4sQ8sI")  # magic, version, dtype, columns, which store it is, CRC-32 of these
START = 64  # of the first row
CHECKSUM = struct.Struct("<I")  # behind each row: the CRC-32 of the store, the row's number and its bytes
DTYPES = {b"F64": torch.float64, b"F32": torch.float32, b"F16": torch.float16, b"BF16": torch.bfloat16}


@dataclass(frozen=True)
class SampleStore:
    """An append-only file of rows, each with a checksum: what a sampler keeps its states in.

    A row that was damaged is refused when it is read. What a killed append leaves behind its last whole row is `torn`:
    it counts for nothing, and `truncate` cuts it off. Nothing is held open or mapped between calls, so that only rows
    just read are in memory. With a `count`, the store is read as it stood when it had so many rows.
    """

    path: Path
    columns: int
    dtype: torch.dtype
    identity: bytes
    count: int | None = None

    @classmethod
    def create(cls, path: str | PathLike[str], columns: int, dtype: torch.dtype = torch.float32) -> SampleStore:
        """A new store without rows."""
        columns, dtype_code = require_whole("columns", columns), _dtype_code(dtype)
        store = cls(Path(path).absolute(), columns, dtype, secrets.token_bytes(8))
        fields = (MAGIC, VERSION, dtype_code, columns, store.identity)
        check = zlib.crc32(HEADER.pack(*fields, 0)[:-4])
        try:
            store.path.parent.mkdir(parents=True, exist_ok=True)
            with open(store.path, "xb") as file:
                file.write(HEADER.pack(*fields, check).ljust(START, b"\0"))
                _flush_to_disk(file)
        except FileExistsError:
            raise BadInput(f"{path} exists already; open it with SampleStore.open, or choose another name") from None
        except OSError as error:
            raise BrokenFile(f"could not write {path}: {error.strerror or error}") from error
        return store

    @classmethod
    def open(cls, path: str | PathLike[str]) -> SampleStore:
        """The store in a file."""
        try:
            with open(path, "rb") as file:
                header = file.read(START)
        except OSError as error:
            raise BrokenFile(f"{path} cannot be read ({error.strerror or error}); expected a store of rows") from None
        if len(header) < START or not header.startswith(MAGIC):
            raise BrokenFile(f"{path} is not a store of rows written by Doxa, or is cut short")
        _, version, dtype_code, columns, identity, check = HEADER.unpack(header[: HEADER.size])
        if zlib.crc32(header[: HEADER.size - 4]) != check:
            raise BrokenFile(f"{path} is damaged: its header does not match its checksum; restore it from a copy")
        if version > VERSION:
            raise BrokenFile(f"{path} has store version {version}; this Doxa reads up to {VERSION}: upgrade Doxa")
        dtype = DTYPES.get(dtype_code.rstrip(b"\0"))
        if dtype is None or columns < 1:
            raise BrokenFile(f"{path} has a header that Doxa never writes; restore it from a copy")
        return cls(Path(path).absolute(), columns, dtype, identity)

    def __len__(self) -> int:
        """Whole rows."""
        return (self._file_size() - START) // self._row_size if self.count is None else self.count

    @property
    def torn(self) -> bool:
        """Whether the file ends in the middle of a row."""
        return (self._file_size() - START) % self._row_size > 0

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
        content = rows.detach().cpu().contiguous().view(torch.uint8).numpy()
        with self._open_checked("r+b") as file:
            try:
                file.seek(end)
                for k, row in enumerate(content):
                    file.write(row.data)
                    file.write(CHECKSUM.pack(self._checksum(number + k, row.data)))
                _flush_to_disk(file)
            except OSError as error:
                with suppress(OSError):
                    file.truncate(end)
                raise BrokenFile(f"could not append to {self.path}: {error.strerror or error}") from error

    def truncate(self, count: int) -> None:
        """Keep the first `count` rows, the last of them checked, and nothing behind them."""
        count, row_count = require_whole("count", count, 0), len(self)
        if count > row_count:
            raise BrokenFile(
                f"{self.path} holds {row_count} rows, but {count} are to be kept: it is cut short, or not the store "
                "that belongs here"
            )
        if count:
            self.read(count - 1, count)
        with self._open_checked("r+b") as file:
            file.truncate(START + count * self._row_size)
            _flush_to_disk(file)

    def read(self, start: int, stop: int) -> Tensor:
        """Rows `start` to `stop` in fresh memory, each checked."""
        require_within(start, stop, len(self))
        with self._open_checked("rb") as file:
            raw = read_span(file, self.path, START + start * self._row_size, (stop - start) * self._row_size)
        records = raw.view(stop - start, self._row_size)
        for k, record in enumerate(records.numpy()):
            if CHECKSUM.unpack(record[-CHECKSUM.size :].data)[0] != self._checksum(
                start + k, record[: -CHECKSUM.size].data
            ):
                raise BrokenFile(
                    f"row {start + k} of {self.path} is damaged: it does not match its checksum; restore the file from "
                    "a copy"
                )
        return records[:, : -CHECKSUM.size].clone(memory_format=torch.contiguous_format).view(self.dtype)

    @property
    def _row_size(self) -> int:
        return self.columns * self.dtype.itemsize + CHECKSUM.size

    def _checksum(self, number: int, row: memoryview) -> int:
        return zlib.crc32(row, zlib.crc32(self.identity + number.to_bytes(8, "little")))

    def _file_size(self) -> int:
        try:
            return max(START, self.path.stat().st_size)
        except OSError as error:
            raise BrokenFile(f"{self.path} cannot be read: {error.strerror or error}") from None

    def _open_checked(self, mode: str) -> IO[bytes]:
        """The file, if it is still this store."""
        try:
            file = open(self.path, mode)  # noqa: SIM115
        except OSError as error:
            raise BrokenFile(f"{self.path} cannot be opened: {error.strerror or error}") from None
        header = file.read(START)
        if (
            len(header) < START
            or not header.startswith(MAGIC)
            or HEADER.unpack(header[: HEADER.size])[4] != self.identity
        ):
            file.close()
            raise BrokenFile(f"{self.path} is no longer the store that was opened: another file is in its place")
        return file


ROW_SOURCES = (SampleStore, SealedRows, JoinedRows)


def _dtype_code(dtype: torch.dtype) -> bytes:
    for code, candidate in DTYPES.items():
        if candidate == dtype:
            return code
    raise BadInput(f"a store takes rows of real numbers, such as torch.float32; got {dtype}")


def _flush_to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
