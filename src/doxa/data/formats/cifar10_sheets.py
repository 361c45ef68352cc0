"""CIFAR-10 in a smaller form: each batch as four lossless WebP sheets and a file of labels.

A sheet is 1600×1600 pixels: 50 rows of 50 images, in reading order. All take 101 MB, the canonical files 184.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.data.files import find_path, read_bytes
from doxa.data.labels import check_labels
from doxa.errors import BadInput, BrokenFile

SHEETS = 4
SIDE = 50  # images along each edge of a sheet
SOURCE = "the folder its sister files came from"


def sheet_files(name: str) -> tuple[str, ...]:
    """The places of a batch's sheets, and of its labels last."""
    return (*(f"cifar10/{name}.{sheet}.webp" for sheet in range(SHEETS)), f"cifar10/{name}.labels.npy")


def read_sheets(name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The images uint8 [10000, 3, 32, 32] and labels int64 [10000] of a batch, from cifar10/ in the data folder."""
    return read_sheet_files([find_path(place, name="cifar10", source=SOURCE) for place in sheet_files(name)])


def read_sheet_files(files: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The images and labels in these sheets and, last, this file of labels."""
    *paths, labels_path = files
    labels = check_labels(_read_labels(labels_path), labels_path, SHEETS * SIDE**2, classes=10)
    return np.concatenate([_read_images(path) for path in paths]), labels


def _read_images(path: Path) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise BadInput(
            f"reading {path} needs pillow; install it with: pip install 'doxa[images]', "
            "or put CIFAR-10's cifar-10-batches-bin folder beside the file"
        ) from error
    try:
        pixels = np.asarray(Image.open(io.BytesIO(read_bytes(path))).convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise BrokenFile(f"{path} is truncated or not a WebP image ({error}); get a fresh copy of it") from error
    if pixels.shape != (SIDE * 32, SIDE * 32, 3):
        raise BrokenFile(
            f"{path} is {pixels.shape[1]}×{pixels.shape[0]} pixels, expected {SIDE * 32}×{SIDE * 32}; "
            "get a fresh copy of it"
        )
    # row of images, y, column of images, x, colour -> row, column, colour, y, x
    grid: NDArray[np.uint8] = np.einsum("rycxk->rckyx", pixels.reshape(SIDE, 32, SIDE, 32, 3))
    return grid.reshape(SIDE**2, 3, 32, 32)


def _read_labels(path: Path) -> NDArray[np.uint8]:
    try:
        labels: NDArray[np.uint8] = np.lib.format.read_array(io.BytesIO(read_bytes(path)), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise BrokenFile(f"{path} is truncated or not a .npy file ({error}); get a fresh copy of it") from error
    if labels.dtype != np.uint8:
        raise BrokenFile(f"{path} holds {labels.dtype} numbers, expected uint8; get a fresh copy of it")
    return labels
