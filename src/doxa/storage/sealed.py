"""Files: safetensors with a JSON header and a SHA-256 over both; written atomically, read with suspicion, no pickle."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from doxa.errors import BrokenFile
from doxa.storage.disk import atomic_write
from doxa.storage.sample_store import ROW_SOURCES, SampleRows, SealedRows, blocks, file_stamp

VERSION = 1

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


def write(
    path: str | PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    tensors: Mapping[str, Any],
    keep_as: Path | None = None,
) -> None:
    """Write a file whole or not at all; rows that are on disk go from there to the file, a few at a time.

    The file that was there is kept as `keep_as`, if that is given.
    """
    path = Path(path)
    streams = {k: rows for k, rows in tensors.items() if isinstance(rows, ROW_SOURCES)}
    in_memory = {k: t.detach().cpu().contiguous().clone() for k, t in tensors.items() if k not in streams}
    stream_names = {"streams": sorted(streams)} if streams else {}
    text = canonical_json({"format": kind, "version": VERSION, **header, **stream_names})
    # One entry of metadata: several would come out in any order.
    metadata = {"doxa": canonical_json({"header": text, "sha256": sha256_of(text, {**in_memory, **streams})})}
    with atomic_write(path, "wb", keep_as) as file:
        if streams:
            _write_streamed(file, metadata, {**in_memory, **streams})
        else:
            file.write(to_bytes(in_memory, metadata=metadata))


def _write_streamed(file: IO[bytes], metadata: Mapping[str, str], tensors: Mapping[str, Any]) -> None:
    """The same format, without ever holding all of it: the header, then one tensor after the other."""
    entries: dict[str, Any] = {"__metadata__": metadata}
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))  # so that each is aligned
    end = 0
    for name in names:
        shape, dtype = _shape(tensors[name]), tensors[name].dtype
        start, end = end, end + math.prod(shape) * dtype.itemsize
        entries[name] = {"dtype": DTYPE_NAMES[dtype], "shape": shape, "data_offsets": [start, end]}
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little") + header)
    for name in names:
        for part in _byte_parts(tensors[name]):
            file.write(part)


def read(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and tensors of a file, only if every byte is as it was written; rows that were streamed stay in it."""
    path = Path(path)
    if not path.is_file():
        raise BrokenFile(f"{path} is not a file; expected one written by Doxa")
    try:
        with open(path, "rb") as opened:
            stamp = file_stamp(opened)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            streams = _sealed_rows(path, stamp, _stream_names(metadata))
            tensors = {k: file.get_tensor(k) for k in file.keys() if k not in streams} | streams  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise BrokenFile(f"{path} cannot be read: it is damaged, cut short, or not a Doxa file ({error})") from None
    try:
        sealed = json.loads(metadata["doxa"])
        text, digest = sealed["header"], sealed["sha256"]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise BrokenFile(f"{path} is a safetensors file, but not one written by Doxa") from None
    if not isinstance(text, str) or sha256_of(text, tensors) != digest:
        raise BrokenFile(f"{path} is damaged: its contents do not match their SHA-256; restore it from a copy")
    try:
        header = json.loads(text)
        version, stored_kind = int(header["version"]), str(header["format"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BrokenFile(f"{path} has a header that Doxa never writes ({error!r}); restore it from a copy") from None
    if version > VERSION:
        raise BrokenFile(f"{path} has format version {version}; this Doxa reads up to {VERSION}: upgrade Doxa")
    if stored_kind != kind:
        raise BrokenFile(f"{path} holds a {stored_kind}, not a {kind}: choose another file or folder")
    return header, tensors


def _stream_names(metadata: Mapping[str, str]) -> list[str]:
    """The tensors that are to be left where they are, as the header says before it is trusted."""
    try:
        return [str(name) for name in json.loads(json.loads(metadata["doxa"])["header"]).get("streams", ())]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return []  # whatever is wrong with it is said in its turn


def _sealed_rows(path: Path, stamp: tuple[int, ...], names: Sequence[str]) -> dict[str, SealedRows]:
    """Tensors of two axes that stay in a file which safetensors has found to be whole."""
    if not names:
        return {}
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entries = json.loads(file.read(length))
    rows_by_name = {}
    for name in names:
        (count, columns), (start, end) = entries[name]["shape"], entries[name]["data_offsets"]
        dtype = {dtype_name: dtype for dtype, dtype_name in DTYPE_NAMES.items()}[entries[name]["dtype"]]
        if count * columns * dtype.itemsize != end - start:
            raise ValueError(f"{name} has another size than its shape")
        rows_by_name[name] = SealedRows(path.absolute(), 8 + length + start, count, columns, dtype, stamp)
    return rows_by_name


def canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_of(text: str, tensors: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(canonical_json([name, str(tensor.dtype), _shape(tensor)]).encode())
        for part in _byte_parts(tensor):
            digest.update(part)
    return digest.hexdigest()


def _shape(tensor: Tensor | SampleRows) -> list[int]:
    return list(tensor.shape) if isinstance(tensor, Tensor) else [len(tensor), tensor.columns]


def _byte_parts(tensor: Tensor | SampleRows) -> Iterator[memoryview]:
    """The bytes of a tensor; of rows on disk, a few at a time."""
    if isinstance(tensor, Tensor):
        yield tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data
        return
    for start, stop in blocks(tensor):
        yield tensor.read(start, stop).contiguous().reshape(-1).view(torch.uint8).numpy().data
