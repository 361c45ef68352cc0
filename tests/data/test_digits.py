"""The digits of scikit-learn."""

from __future__ import annotations

import numpy as np

from doxa.data import digits


def test_shapes_types_and_range() -> None:
    read = digits()
    assert read.x_train.shape == (1437, 8, 8)
    assert read.x_test.shape == (360, 8, 8)
    assert (read.x_train.dtype, read.y_train.dtype) == (np.uint8, np.int64)
    assert (read.name, read.classes, read.maximum) == ("digits", 10, 16)
    train, test = read.images()
    assert train.shape == (1437, 1, 8, 8)
    assert train.dtype == np.float32
    assert (train.min(), train.max(), test.min(), test.max()) == (0, 1, 0, 1)


def test_split_is_stratified_whole_and_the_same_every_time() -> None:
    from sklearn.datasets import load_digits

    once, again = digits(), digits()
    assert np.array_equal(once.x_train, again.x_train)
    assert np.array_equal(once.y_test, again.y_test)
    class_counts = np.bincount(load_digits().target)
    assert np.array_equal(np.bincount(once.y_train) + np.bincount(once.y_test), class_counts)
    assert np.abs(np.bincount(once.y_test) - 0.2 * class_counts).max() < 1
    # Every image is there with its own label.
    both = np.concatenate([once.x_train, once.x_test]).reshape(-1, 64)
    labelled = np.column_stack([both, np.concatenate([once.y_train, once.y_test])])
    original = np.column_stack([load_digits().data, load_digits().target])
    assert np.array_equal(np.unique(labelled, axis=0), np.unique(original, axis=0))
