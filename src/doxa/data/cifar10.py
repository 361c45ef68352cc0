"""CIFAR-10."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doxa.data.cifar10_sheets import read_sheets
from doxa.data.dataset import Dataset
from doxa.data.files import find, read
from doxa.data.labels import checked
from doxa.errors import BadInput, BrokenFile

BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
ROWS = 10_000
RECORD = 1 + 3 * 32 * 32  # the label, then a red, a green and a blue plane


def cifar10() -> Dataset:
    """Colour photographs of ten kinds of thing: 50,000 and 10,000, 3×32×32, read as `cifar10_batch` does.

    Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    *train, test = (cifar10_batch(name) for name in BATCHES)
    x, y = (np.concatenate(parts) for parts in zip(*train, strict=True))
    return Dataset("cifar10", x, y, *test, classes=10)


def cifar10_batch(name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """One of the six published batches: images uint8 [10000, 3, 32, 32] and labels int64 [10000].

    From `cifar-10-batches-bin/` in DOXA_DATA/cifar10 or in DOXA_DATA, else from lossless WebP sheets in
    DOXA_DATA/cifar10.
    """
    if name not in BATCHES:
        raise BadInput(f"CIFAR-10 has no batch {name!r}; its batches are {', '.join(BATCHES)}")
    path = find(
        f"cifar10/cifar-10-batches-bin/{name}.bin",
        f"cifar-10-batches-bin/{name}.bin",
        f"cifar10/{name}.0.webp",
        source="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz (unpacked)",
    )
    if path.suffix == ".webp":
        return read_sheets(name)
    raw = read(path)
    if len(raw) != ROWS * RECORD:
        raise BrokenFile(f"{path} has {len(raw)} bytes, expected {ROWS * RECORD}; get a fresh copy of it")
    records = np.frombuffer(raw, np.uint8).reshape(ROWS, RECORD)
    return records[:, 1:].reshape(ROWS, 3, 32, 32).copy(), checked(records[:, 0], path, ROWS, classes=10)
