"""Labelled images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images as they are stored and their labels, split into training and test rows.

    x: uint8 [N, H, W] or [N, C, H, W], from 0 to `maximum`;  y: int64 [N], from 0 to classes − 1
    """

    name: str
    x_train: NDArray[np.uint8]
    y_train: NDArray[np.int64]
    x_test: NDArray[np.uint8]
    y_test: NDArray[np.int64]
    classes: int
    maximum: int = 255

    def images(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The training and the test images as x / maximum: float32 [N, C, H, W] in [0, 1]."""
        return _scale(self.x_train, self.maximum), _scale(self.x_test, self.maximum)


def _scale(x: NDArray[np.uint8], maximum: int) -> NDArray[np.float32]:
    with_channels = x if x.ndim == 4 else x[:, None]
    return np.divide(with_channels, maximum, dtype=np.float32)
