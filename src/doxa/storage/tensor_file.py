"""The safetensors format, read through one open file: what its header says of tensors, checked against its bytes.

Tensors come in memory of their own: those of a mapped file would change with it, long after its SHA-256 was checked.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from doxa.storage.reading import Digest, read_span

LONGEST_HEADER = 100_000_000  # bytes, as in safetensors itself
METADATA = "__metadata__"

# Numbers as safetensors calls them.
DTYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.complex64: "C64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.bool: "BOOL",
}
DTYPES = {name: dtype for dtype, name in DTYPE_NAMES.items()}


@dataclass(frozen=True)
class Entry:
    """Where a tensor lies in its file, in bytes from the file's beginning."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


def read_header(file: IO[bytes], path: Path) -> tuple[bytes, dict[str, str], list[Entry]]:
    """The first bytes of a file, its metadata, and its tensors in the order of their bytes, which fill the rest of it.

    Raises ValueError where that is not so.
    """
    file_size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(read_span(file, path, 0, min(8, file_size)).numpy().tobytes(), "little")
    if file_size < 8 or length > min(LONGEST_HEADER, file_size - 8):
        raise ValueError("it has no header of safetensors")
    head = read_span(file, path, 0, 8 + length).numpy().tobytes()
    header = json.loads(head[8:].decode())
    if not isinstance(header, dict):
        raise ValueError("its header names no tensors")
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are no text")
    entries = sorted(
        (_entry(name, value, len(head)) for name, value in header.items()), key=lambda e: (e.start, e.stop)
    )
    end = len(head)
    for entry in entries:
        if entry.start != end:
            raise ValueError(f"the bytes of {entry.name!r} do not begin where those before them end")
        end = entry.stop
    if end != file_size:
        raise ValueError(f"it has {file_size} bytes, but its header speaks of {end}")
    return head, metadata, entries


def read_entry(file: IO[bytes], path: Path, entry: Entry, digest: Digest | None = None) -> Tensor:
    """A tensor in fresh memory; a digest is updated with its bytes."""
    raw = read_span(file, path, entry.start, entry.stop - entry.start, digest)
    if entry.dtype == torch.bool and bool((raw > 1).any()):
        raise ValueError(f"{entry.name!r} holds a yes or no that is neither")
    return raw.view(entry.dtype).view(entry.shape)


def _entry(name: str, value: Any, offset: int) -> Entry:
    """What a header says of one tensor, if it can be true."""
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"its header describes no tensor as {name!r}")
    dtype = DTYPES.get(value["dtype"]) if isinstance(value["dtype"], str) else None
    if dtype is None:
        raise ValueError(f"{name!r} has numbers of an unknown kind")
    shape, offsets = value["shape"], value["data_offsets"]
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise ValueError(f"{name!r} has no shape, or no place in the file")
    if math.prod(max(1, n) for n in shape) >= 1 << 62:
        raise ValueError(f"{name!r} has a shape that no tensor has")
    if math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0]:
        raise ValueError(f"{name!r} has another size than its shape")
    return Entry(name, dtype, tuple(shape), offset + offsets[0], offset + offsets[1])


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in values)
