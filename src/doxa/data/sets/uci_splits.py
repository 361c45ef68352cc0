"""The customary splits of the regression sets, nine rows to train on for one to test with.

Hernández-Lobato & Adams (2015), Probabilistic backpropagation; Gal & Ghahramani (2016), Dropout as a Bayesian
approximation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.data.files import broken_file_error
from doxa.data.formats.text import parse_numbers, read_text
from doxa.data.tabular import Split
from doxa.errors import BadInput


def standard_splits(rows: int, count: int) -> tuple[Split, ...]:
    """The splits as they were published, drawn again: one permutation after another from a generator seeded with 1.

    train: the first ⌊0.9 rows⌉ of each permutation;  test: the others
    """
    # numpy keeps this old generator's stream as it is for ever; the new ones' may change.
    draws = np.random.RandomState(1)
    orders = [draws.permutation(rows).astype(np.int64) for _ in range(count)]
    end = round(0.9 * rows)
    return tuple((order[:end], order[end:]) for order in orders)


def read_splits(folder: Path, rows: int, count: int) -> tuple[Split, ...] | None:
    """The splits in index_train_K.txt and index_test_K.txt; None where the folder holds none of them."""
    if not any(folder.glob("index_t*_*.txt")):
        return None
    return tuple(_read_split(folder, number, rows) for number in range(count))


def _read_split(folder: Path, number: int, rows: int) -> Split:
    paths = [folder / f"index_{part}_{number}.txt" for part in ("train", "test")]
    for path in paths:
        if not path.is_file():
            raise BadInput(
                f"the file {path} is missing though other splits are there; put it there, or remove all "
                f"index_train_ and index_test_ files from {folder} for the splits as published"
            )
    train, test = (_read_indices(path, rows) for path in paths)
    occurrences = np.bincount(np.concatenate([train, test]), minlength=rows)
    if (occurrences != 1).any():
        row = int(np.argmax(occurrences != 1))
        raise broken_file_error(
            paths[1], f"row {row} is {occurrences[row]} times in it and {paths[0].name} together, expected once"
        )
    return train, test


def _read_indices(path: Path, rows: int) -> NDArray[np.int64]:
    indices = parse_numbers(path, [[cell] for cell in read_text(path).split()] or [[]]).ravel()
    invalid = indices[(indices < 0) | (indices >= rows) | (indices != np.floor(indices))]
    if invalid.size:
        raise broken_file_error(path, f"it holds the index {invalid[0]:g}, expected whole numbers from 0 to {rows - 1}")
    return indices.astype(np.int64)
