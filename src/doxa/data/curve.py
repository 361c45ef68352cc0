"""The regression curve of weight uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a curve to learn where x_train lies, and to be unsure of elsewhere: float32, each [N, 1]."""

    x_train: NDArray[np.float32]
    y_train: NDArray[np.float32]
    x_test: NDArray[np.float32]
    y_test: NDArray[np.float32]


def curve(seed: int = 0, train: int = 1024, test: int = 1000, noise: float = 0.02) -> Curve:
    """A wave with noise inside and outside of it, seen on a quarter of where it is asked for.

    y = x + 0.3 sin(2π(x + ε)) + 0.3 sin(4π(x + ε)) + ε,  ε ~ N(0, noise²), one for each point

    Training x uniform on [0, 0.5], `train` of them; test x evenly spaced on [−0.5, 1.5], `test` of them.
    Blundell et al. (2015), Weight uncertainty in neural networks, section 5.2.
    """
    if train < 1 or test < 1:
        raise BadInput(f"a curve needs at least one point to train on and one to test with; got {train} and {test}")
    if not 0 <= noise < math.inf:
        raise BadInput(f"noise must be a finite standard deviation, 0 or more; got {noise}")
    # A stream for each half, so that the size of one does not change the other.
    for_train, for_test = np.random.default_rng(seed).spawn(2)
    x_train = for_train.uniform(0.0, 0.5, (train, 1))
    x_test = np.linspace(-0.5, 1.5, test)[:, None]
    y_train = _wave(x_train, for_train.normal(0.0, noise, x_train.shape))
    y_test = _wave(x_test, for_test.normal(0.0, noise, x_test.shape))
    return Curve(*(part.astype(np.float32) for part in (x_train, y_train, x_test, y_test)))


def _wave(x: NDArray[np.float64], e: NDArray[np.float64]) -> NDArray[np.float64]:
    return x + 0.3 * np.sin(2 * np.pi * (x + e)) + 0.3 * np.sin(4 * np.pi * (x + e)) + e
