"""The labels of a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BrokenFile


def check_labels(labels: NDArray[np.uint8], path: Path, count: int, classes: int) -> NDArray[np.int64]:
    """Labels [count], each below `classes`, as int64; or an error that names the file they came from."""
    if labels.shape != (count,):
        raise BrokenFile(
            f"{path} holds labels of shape {labels.shape}, expected ({count},), one for each image; "
            "get all files of the set from one place"
        )
    if labels.size and labels.max() >= classes:
        raise BrokenFile(f"{path} holds the label {labels.max()}, expected 0 to {classes - 1}; get a fresh copy of it")
    return labels.astype(np.int64)
