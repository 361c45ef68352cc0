"""The IDX format, in which MNIST and its successors are published.

A file is two zero bytes, a type code (8: unsigned byte), the number of axes, each axis's length as a
big-endian 32-bit number, then the entries; usually gzipped.
LeCun, Cortes & Burges (1998), The MNIST database of handwritten digits.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.data.card import Card, File
from doxa.data.dataset import Dataset
from doxa.data.files import broken_file_error, find_file, read_bytes
from doxa.data.labels import check_labels

UNSIGNED_BYTE = 8


def read_idx(path: Path, item: tuple[int, ...]) -> NDArray[np.uint8]:
    """The entries of an IDX file, gzipped or plain, whose items have the shape `item`: uint8 [N, *item]."""
    raw = _read_decompressed(path)
    axes = 1 + len(item)
    header = 4 + 4 * axes
    if raw[:2] != b"\0\0" or len(raw) < 4:
        raise broken_file_error(path, f"it begins with {raw[:4].hex(' ') or 'nothing'}, an IDX file with 00 00")
    if raw[2] != UNSIGNED_BYTE:
        raise broken_file_error(path, f"its entries have type code {raw[2]}, expected {UNSIGNED_BYTE} (unsigned bytes)")
    if raw[3] != axes:
        raise broken_file_error(path, f"it has {raw[3]} axes, expected {axes}")
    if len(raw) < header:
        raise broken_file_error(path, f"it ends after {len(raw)} bytes, within its header of {header}")
    shape = struct.unpack(f">{axes}I", raw[4:header])
    if shape[1:] != item:
        raise broken_file_error(path, f"its items have shape {shape[1:]}, expected {item}")
    if len(raw) != header + math.prod(shape):
        raise broken_file_error(path, f"it has {len(raw)} bytes unpacked, expected {header + math.prod(shape)}")
    # Copied because torch warns about arrays that cannot be written to, as those over bytes are.
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape).copy()


def idx_files(folder: str, url: str, *sizes_and_digests: tuple[int, str, str]) -> tuple[File, ...]:
    """The four files of a set: images and labels to train on, then to test.

    sizes_and_digests: of each the bytes and the SHA-256 as published, and the SHA-256 of what it unpacks to
    """
    stems = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return tuple(
        File(f"{folder}/{stem}.gz", f"{url}/{stem}.gz", size, sha256, ((f"{folder}/{stem}",),), (unpacked,))
        for stem, (size, sha256, unpacked) in zip(stems, sizes_and_digests, strict=True)
    )


def idx_dataset(card: Card) -> Dataset:
    """The ten-class set of 28×28 images whose four files the card names."""
    train_images, train_labels, test_images, test_labels = (find_file(file, card.name) for file in card.files)
    return Dataset(
        card.name, *_read_pair(train_images, train_labels), *_read_pair(test_images, test_labels), classes=10
    )


def _read_pair(images_path: Path, labels_path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images = read_idx(images_path, (28, 28))
    return images, check_labels(read_idx(labels_path, ()), labels_path, len(images), classes=10)


def _read_decompressed(path: Path) -> bytes:
    raw = read_bytes(path)
    # By content, not by name: browsers are known to unpack a download and leave its name alone.
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as error:
        raise broken_file_error(path, f"it does not unpack: {error}") from error
