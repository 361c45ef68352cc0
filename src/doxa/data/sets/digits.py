"""The small digits that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from doxa.data.card import Card
from doxa.data.dataset import Dataset

CARD = Card(
    name="digits",
    description="Handwritten digits, small and grey from 0 to 16, 1,437 to train on and 360 to test with.",
    rows=1797,
    shape=(8, 8),
    task="classification",
    licence="CC BY 4.0",
    citation="Alpaydin & Kaynak (1998), Optical recognition of handwritten digits, doi 10.24432/C50P49",
    home="https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits",
    note="Comes with scikit-learn: nothing to fetch.",
)


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
