"""Small images as data addresses: PNG, written here so that its bytes depend on nothing else."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any


def png_data_url(image: Sequence[Sequence[Any]]) -> str:
    """An image [H][W] of numbers from 0 to 1, or [H][W] of three of them, as a PNG for an <img>."""
    coloured = isinstance(image[0][0], list | tuple)
    rows = []
    for line in image:
        values = [channel for pixel in line for channel in pixel] if coloured else line
        # Each row starts with its filter: none.
        rows.append(b"\0" + bytes(round(255 * min(1.0, max(0.0, value or 0.0))) for value in values))
    header = struct.pack(">IIBBBBB", len(image[0]), len(image), 8, 2 if coloured else 0, 0, 0, 0)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", _uncompressed_zlib(b"".join(rows))), _chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _uncompressed_zlib(content: bytes) -> bytes:
    """A zlib stream without compression: the same from every version of zlib."""
    blocks = [content[start : start + 0xFFFF] for start in range(0, len(content), 0xFFFF)]
    stream = b"".join(
        struct.pack("<BHH", k == len(blocks) - 1, len(block), 0xFFFF ^ len(block)) + block
        for k, block in enumerate(blocks)
    )
    return b"\x78\x01" + stream + struct.pack(">I", zlib.adler32(content))
