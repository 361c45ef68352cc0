"""Files: safetensors with a JSON header and a SHA-256 over both; written atomically, read with suspicion, no pickle."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from doxa.errors import BadInput, BrokenFile, DoxaError, NewerFile, shorten
from doxa.storage import fields
from doxa.storage.disk import atomic_write
from doxa.storage.json_text import canonical_json, parse_object
from doxa.storage.reading import file_stamp, open_file
from doxa.storage.rows import SampleRows, blocks
from doxa.storage.sealed_rows import SealedRows, decode_seals, encode_seals, seal_segments
from doxa.storage.store_format import DTYPES as ROW_DTYPES
from doxa.storage.tensor_file import DTYPE_NAMES, Entry, read_entry, read_header

VERSION = 1

# What reading bytes that mean harm, or nothing, may come to.
UNREADABLE = (ValueError, KeyError, TypeError, OverflowError, MemoryError, RecursionError, RuntimeError)


@contextmanager
def explain_contents(path: str | PathLike[str]) -> Iterator[None]:
    """Say of a file whose seal holds, and whose contents cannot be, which field that is, whatever is wrong with it."""
    try:
        yield
    except DoxaError as error:
        raise BrokenFile(f"{path}: {error}") from None
    except KeyError as error:
        raise BrokenFile(f"{path} is a Doxa file whose contents make no sense: it has no {error}") from None
    except (*UNREADABLE, IndexError, AttributeError) as error:
        raise BrokenFile(f"{path} is a Doxa file whose contents make no sense: {shorten(str(error), 300)}") from None


def write(
    path: str | PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    tensors: Mapping[str, Any],
    keep_as: Path | None = None,
    finite: Mapping[str, int] | None = None,
) -> None:
    """Write a file whole or not at all; rows that are on disk go from there to the file, a few at a time.

    The file that was there is kept as `keep_as`, if that is given. Of the rows that `finite` names, so many columns
    must be finite.
    """
    path, finite = Path(path), finite or {}
    contents = {k: t.detach().cpu().contiguous() if isinstance(t, Tensor) else t for k, t in tensors.items()}
    for name, t in contents.items():
        if t.dtype not in DTYPE_NAMES:
            raise BadInput(f"{path} cannot be written: {name} holds {t.dtype}, which safetensors has no name for")
    seals = {
        k: encode_seals(seal_segments(t, finite.get(k, 0))) for k, t in contents.items() if not isinstance(t, Tensor)
    }
    streams = {"streams": seals} if seals else {}
    text = _header_text(path, {"format": kind, "version": VERSION, **header, **streams})
    with atomic_write(path, "wb", keep_as) as file:
        _write_sealed(file, text, contents)


def _header_text(path: Path, header: Mapping[str, Any]) -> str:
    """A header as text, if it is one that `read` will take."""
    try:
        text = canonical_json(header)
        parse_object(text)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} cannot be written: {error}; give names of plain text, nested less deep") from None
    return text


def _write_sealed(file: IO[bytes], text: str, tensors: Mapping[str, Any]) -> None:
    """The format of safetensors, without ever holding all of it; rows on disk are written as they are hashed."""
    _, starts = _head(text, "0" * 64, tensors)  # which is as long as any seal

    def copied(name: str) -> Iterator[memoryview]:
        file.seek(starts[name])
        for part in _byte_parts(tensors[name]):
            file.write(part)
            yield part

    seal = sha256_of(text, tensors, {name: copied(name) for name, t in tensors.items() if not isinstance(t, Tensor)})
    file.seek(0)
    file.write(_head(text, seal, tensors)[0])
    for name, start in starts.items():
        if isinstance(tensors[name], Tensor):
            if file.tell() != start:  # behind rows; to seek is to flush
                file.seek(start)
            for part in _byte_parts(tensors[name]):
                file.write(part)


def _head(text: str, seal: str, tensors: Mapping[str, Any]) -> tuple[bytes, dict[str, int]]:
    """The first bytes of a file, and where in it each tensor begins, in that order."""
    # One entry of metadata, as the seal is over one text.
    metadata = {"doxa": canonical_json({"header": text, "sha256": seal})}
    entries: dict[str, Any] = {"__metadata__": metadata}
    offsets, end = {}, 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name)):  # so that each is aligned
        shape, dtype = _shape(tensors[name]), tensors[name].dtype
        start, end = end, end + math.prod(shape) * dtype.itemsize
        entries[name] = {"dtype": DTYPE_NAMES[dtype], "shape": shape, "data_offsets": [start, end]}
        offsets[name] = start
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    head = len(header).to_bytes(8, "little") + header
    return head, {name: len(head) + offset for name, offset in offsets.items()}


def read(
    path: str | PathLike[str], kind: str | None, sha256: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and tensors of a file, only if every byte is as it was written; rows that were streamed stay in it.

    Without a `kind` it may be of any. Where the SHA-256 of the whole file is known from elsewhere and given, that is
    compared, in the one pass in which the file is read, and no other hash is taken.
    """
    path = Path(path)
    with open_file(path, "one written by Doxa") as file:
        stamp = file_stamp(file)
        try:
            head, metadata, entries = read_header(file, path)
            streams = _sealed_rows(path, stamp, entries, _streams(metadata))
            tensors, file_digest = _read_tensors(file, path, head, entries, streams, sha256 is not None)
        except UNREADABLE as error:
            raise BrokenFile(f"{path} cannot be read: it is damaged, cut short, or not a Doxa file ({error})") from None
        if sha256 is not None and file_digest != sha256:
            raise BrokenFile(f"{path} is damaged or another file: its SHA-256 is not {sha256}; restore it from a copy")
        text, seal = _parse_metadata(path, metadata)
        if sha256 is None and sha256_of(text, tensors) != seal:
            raise BrokenFile(f"{path} is damaged: its contents do not match their SHA-256; restore it from a copy")
        if file_stamp(file) != stamp:
            raise BrokenFile(f"{path} was changed while it was read; read it again when nothing writes to it")
    return _parse_header(path, text, kind), tensors


def _read_tensors(
    file: IO[bytes], path: Path, head: bytes, entries: Sequence[Entry], streams: Mapping[str, SealedRows], hashed: bool
) -> tuple[dict[str, Any], str]:
    """All tensors, but for rows that stay where they are, and the SHA-256 of the file if it is wanted."""
    digest = hashlib.sha256(head) if hashed else None
    tensors: dict[str, Any] = {}
    for entry in entries:
        if entry.name not in streams:
            tensors[entry.name] = read_entry(file, path, entry, digest)
            continue
        tensors[entry.name] = streams[entry.name]
        if digest is not None:
            for part in _byte_parts(streams[entry.name]):
                digest.update(part)
    return tensors, "" if digest is None else digest.hexdigest()


def _parse_metadata(path: Path, metadata: Mapping[str, str]) -> tuple[str, str]:
    """A file's header as text, and the seal over it and the tensors."""
    try:
        outer = parse_object(metadata["doxa"])
        text, seal = outer["header"], outer["sha256"]
        if not isinstance(text, str) or not isinstance(seal, str):
            raise ValueError("its header is no text")
    except (KeyError, ValueError):
        raise BrokenFile(f"{path} is a safetensors file, but not one written by Doxa") from None
    return text, seal


def _parse_header(path: Path, text: str, kind: str | None) -> dict[str, Any]:
    """A header of this kind, or of any, and of a version that is known."""
    try:
        header = parse_object(text)
        version, stored_kind = header["version"], header["format"]
        if type(version) is not int or version < 1:
            raise ValueError(f"version is {shorten(repr(version))}, not a whole number from 1 up")
        if not isinstance(stored_kind, str):
            raise ValueError(f"format is {shorten(repr(stored_kind))}, not a name")
    except (KeyError, ValueError) as error:
        raise BrokenFile(f"{path} has a header that Doxa never writes ({error!r}); restore it from a copy") from None
    if version > VERSION:
        raise NewerFile(f"{path} has format version {version}; this Doxa reads up to {VERSION}: upgrade Doxa")
    if kind is not None and stored_kind != kind:
        raise BrokenFile(f"{path} holds a {shorten(stored_kind)}, not a {kind}: choose another file or folder")
    return header


def _streams(metadata: Mapping[str, str]) -> dict[str, Any]:
    """The tensors that are to be left where they are and their seals, as the header says before it is trusted.

    None are the seals of files that an older Doxa wrote: these have names alone.
    """
    try:
        streams = parse_object(parse_object(metadata["doxa"])["header"]).get("streams", {})
    except (KeyError, TypeError, ValueError):
        return {}  # whatever is wrong with it is said in its turn
    return streams if isinstance(streams, dict) else dict.fromkeys(fields.items("streams", streams))


def _sealed_rows(
    path: Path, stamp: tuple[int, ...], entries: Sequence[Entry], streams: Mapping[str, Any]
) -> dict[str, SealedRows]:
    """Tensors of two axes that stay in their file."""
    entry_by_name = {entry.name: entry for entry in entries}
    rows_by_name = {}
    for name, encoded in streams.items():
        entry = entry_by_name.get(name)
        if entry is None or len(entry.shape) != 2 or entry.dtype not in ROW_DTYPES.values():
            raise ValueError(f"{shorten(repr(name))} has no rows of real numbers")
        seals = None if encoded is None else decode_seals(f"streams.{name}", encoded, entry.shape[0])
        rows_by_name[name] = SealedRows(path.absolute(), entry.start, *entry.shape, entry.dtype, stamp, seals)
    return rows_by_name


def sha256_of(text: str, tensors: Mapping[str, Any], parts: Mapping[str, Iterator[memoryview]] | None = None) -> str:
    """The seal over a header and its tensors; the bytes of those that `parts` names are taken from there."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(canonical_json([name, str(tensor.dtype), _shape(tensor)]).encode())
        for part in (parts or {}).get(name) or _byte_parts(tensor):
            digest.update(part)
    return digest.hexdigest()


def _shape(tensor: Tensor | SampleRows) -> list[int]:
    return list(tensor.shape) if isinstance(tensor, Tensor) else [len(tensor), tensor.columns]


def _byte_parts(tensor: Tensor | SampleRows) -> Iterator[memoryview]:
    """The bytes of a tensor; of rows on disk, a few at a time."""
    if isinstance(tensor, Tensor):
        yield tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data
        return
    parts = tensor.content() if isinstance(tensor, SealedRows) else (tensor.read(*span) for span in blocks(tensor))
    for part in parts:
        yield part.contiguous().reshape(-1).view(torch.uint8).numpy().data
