"""The small digits that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from doxa.data.dataset import Dataset


def digits() -> Dataset:
    """Handwritten digits that need no file: 1,437 and 360, 8×8, grey from 0 to 16.

    The same split every time, 80 to 20 with each class in proportion.
    Alpaydin & Kaynak (1998), Cascading classifiers.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    bunch = load_digits()
    images, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    x_train, x_test, y_train, y_test = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=0)
    return Dataset("digits", x_train, y_train, x_test, y_test, classes=10, maximum=16)
