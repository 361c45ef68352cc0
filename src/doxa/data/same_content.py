"""The same content in another form: packed anew, or with other ends of lines."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

GZIP = b"\x1f\x8b"
BLOCK = 1 << 20
UNPACKED_BYTES, TEXT_BYTES = 1 << 28, 1 << 26  # looked at, at most
TEXT = (".csv", ".data", ".txt")  # of anything else, ends of lines are content


def other_digests(file: BinaryIO, path: Path) -> Iterator[str]:
    """The SHA-256 of other forms that are read as this file is, whatever packed it or ended its lines."""
    file.seek(0)
    if path.suffix in TEXT:
        text = file.read(TEXT_BYTES).replace(b"\r\n", b"\n")
        for ending in (b"\n", b"\r\n"):
            yield hashlib.sha256(text.replace(b"\n", ending)).hexdigest()
    elif file.read(len(GZIP)) == GZIP:
        file.seek(0)
        if digest := _digest_unpacked(file):
            yield digest


def _digest_unpacked(file: BinaryIO) -> str | None:
    sha256, size = hashlib.sha256(), 0
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            while block := unpacked.read(BLOCK):
                sha256.update(block)
                size += len(block)
                if size > UNPACKED_BYTES:
                    return None
    except (EOFError, OSError, zlib.error):
        return None
    return sha256.hexdigest()
