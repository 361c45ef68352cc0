"""How a store of rows lies in its file: a header, rows with a checksum each, and a seal behind every segment of them.

Each seal is the SHA-256 of the one before it, or of the header, and of the segment's rows with their checksums. Stores
of version 1 have no seals.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import torch

from doxa.errors import BadInput, BrokenFile, NewerFile

MAGIC, VERSION = b"doxarows", 2
HEADER_1 = struct.Struct("<8sI4sQ8sI")  # magic, version, dtype, columns, which store it is, CRC-32 of these
HEADER = struct.Struct("<8sI4sQ8sQ20sI")  # the same, and rows in a segment; the CRC-32 is of all before it
START = 64  # of the first row
CHECKSUM = struct.Struct("<I")  # behind each row: the CRC-32 of the store, the row's number and its bytes
SEAL = 32  # bytes behind each full segment
DTYPES = {b"F64": torch.float64, b"F32": torch.float32, b"F16": torch.float16, b"BF16": torch.bfloat16}


@dataclass(frozen=True)
class StoreFormat:
    """What the header of a store says, and where its rows are by that; `segment` is None in stores of version 1."""

    columns: int
    dtype: torch.dtype
    identity: bytes
    segment: int | None

    def header(self) -> bytes:
        """The first bytes of the file."""
        dtype_code = code_of(self.dtype)
        if self.segment is None:
            fields = HEADER_1.pack(MAGIC, 1, dtype_code, self.columns, self.identity, 0)[: -CHECKSUM.size]
        else:
            fields = HEADER.pack(MAGIC, VERSION, dtype_code, self.columns, self.identity, self.segment, b"", 0)
            fields = fields[: -CHECKSUM.size]
        return (fields + CHECKSUM.pack(zlib.crc32(fields))).ljust(START, b"\0")

    @property
    def row_size(self) -> int:
        """Bytes of a row and its checksum."""
        return self.columns * self.dtype.itemsize + CHECKSUM.size

    def start_of(self, row: int) -> int:
        """Where a row begins."""
        return START + row * self.row_size + (0 if self.segment is None else row // self.segment * SEAL)

    def rows_within(self, size: int) -> int:
        """Whole rows of a file of so many bytes."""
        if self.segment is None:
            return (size - START) // self.row_size
        segments, rest = divmod(size - START, self.segment * self.row_size + SEAL)
        return segments * self.segment + min(rest // self.row_size, self.segment)

    def sealed_segments(self, size: int) -> int:
        """Segments with their seals in a file of so many bytes."""
        return 0 if self.segment is None else (size - START) // (self.segment * self.row_size + SEAL)

    def checksum(self, number: int, row: memoryview) -> bytes:
        """What stands behind a row."""
        return CHECKSUM.pack(zlib.crc32(row, zlib.crc32(self.identity + number.to_bytes(8, "little"))))


def parse_header(path: Path, header: bytes) -> StoreFormat:
    """The way back from `header`, of this version or the first."""
    if len(header) < START or not header.startswith(MAGIC):
        raise BrokenFile(f"{path} is not a store of rows written by Doxa, or is cut short")
    version = int.from_bytes(header[8:12], "little")
    if version > VERSION:
        raise NewerFile(f"{path} has store version {version}; this Doxa reads up to {VERSION}: upgrade Doxa")
    layout = HEADER_1 if version == 1 else HEADER
    fields = layout.unpack(header[: layout.size])
    if zlib.crc32(header[: layout.size - CHECKSUM.size]) != fields[-1]:
        raise BrokenFile(f"{path} is damaged: its header does not match its checksum; restore it from a copy")
    dtype, columns, segment = DTYPES.get(fields[2].rstrip(b"\0")), fields[3], None if version == 1 else fields[5]
    if version < 1 or dtype is None or columns < 1 or segment == 0:
        raise BrokenFile(f"{path} has a header that Doxa never writes; restore it from a copy")
    return StoreFormat(columns, dtype, fields[4], segment)


def code_of(dtype: torch.dtype) -> bytes:
    """The name of a dtype in a header."""
    for code, candidate in DTYPES.items():
        if candidate == dtype:
            return code
    raise BadInput(f"a store takes rows of real numbers, such as torch.float32; got {dtype}")
