"""Files as bytes: opened once, told apart by a stamp, read into fresh memory and hashed."""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, Protocol

import torch
from torch import Tensor

from doxa.errors import BrokenFile

CHUNK = 1 << 20  # bytes that are hashed at a time
LARGE = 1 << 23  # bytes from which on pages are large
ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO}


class Digest(Protocol):
    """What hashes bytes, some at a time."""

    def update(self, data: Any, /) -> None: ...


def open_file(path: str | PathLike[str], expected: str) -> IO[bytes]:
    """A regular file to read from; the error says whether it is missing, another thing, or may not be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # so that no pipe is waited for
    except OSError as error:
        if error.errno in ABSENT:
            raise BrokenFile(f"{path} is not a file; expected {expected}") from None
        raise BrokenFile(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise BrokenFile(f"{os.fspath(path)!r} is not a file ({error}); expected {expected}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BrokenFile(f"{path} is not a file; expected {expected}")
    return os.fdopen(descriptor, "rb")


def file_stamp(file: IO[bytes]) -> tuple[int, ...]:
    """What changes when a file is replaced or written to."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def read_span(file: IO[bytes], path: Path, offset: int, size: int, digest: Digest | None = None) -> Tensor:
    """Bytes of a file in fresh memory, aligned for numbers of any kind; a digest is updated with them as they come."""
    if offset + size > os.fstat(file.fileno()).st_size:
        raise BrokenFile(f"{path} is cut short: it ends before rows that it should hold; restore it from a copy")
    try:
        raw = _fresh_memory(size)
    except (MemoryError, RuntimeError, OSError):
        raise BrokenFile(f"{path} cannot be read: there is no memory for {size} bytes of it") from None
    view, bytes_done = raw.numpy().data, 0
    while bytes_done < size:
        try:
            bytes_read = os.preadv(file.fileno(), [view[bytes_done : bytes_done + CHUNK]], offset + bytes_done)
        except OSError as error:
            raise BrokenFile(f"{path} cannot be read: {error.strerror or error}") from None
        if bytes_read == 0:
            raise BrokenFile(f"{path} is cut short: it ends before rows that it should hold; restore it from a copy")
        if digest is not None:
            digest.update(view[bytes_done : bytes_done + bytes_read])
        bytes_done += bytes_read
    return raw


def _fresh_memory(size: int) -> Tensor:
    """Bytes to be read into; many of them in large pages, which a process gets a few times faster than small ones."""
    if size < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(size, dtype=torch.uint8)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.uint8)


def file_sha256(path: str | PathLike[str]) -> str:
    """The SHA-256 of all bytes of a file, of which a few are in memory at a time."""
    with open_file(path, "one that can be hashed") as file:
        digest, chunk = hashlib.sha256(), bytearray(CHUNK)
        try:
            while count := os.readv(file.fileno(), [chunk]):
                digest.update(memoryview(chunk)[:count])
        except OSError as error:
            raise BrokenFile(f"{path} cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()
