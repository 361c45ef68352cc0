"""Tables and their splits."""

from __future__ import annotations

import numpy as np
import pytest

from doxa.data import Tabular
from doxa.errors import BadInput

X, Y = np.arange(10.0).reshape(5, 2), np.arange(5.0)


def test_task_follows_from_the_classes() -> None:
    assert Tabular("t", X, Y, ("a", "b"), "y").task == "regression"
    assert Tabular("t", X, Y.astype(int) % 2, ("a", "b"), "y", ("no", "yes")).task == "classification"


def test_split_takes_rows_in_the_order_of_the_indices() -> None:
    table = Tabular("t", X, Y, ("a", "b"), "y", splits=((np.array([4, 0, 2]), np.array([3, 1])),))
    (x, y), (x_test, y_test) = table.split(0)
    assert y.tolist() == [4, 0, 2]
    assert y_test.tolist() == [3, 1]
    assert np.array_equal(x[:, 0], 2 * y)
    assert np.array_equal(x_test[:, 0], 2 * y_test)


@pytest.mark.parametrize("number", [1, -1])
def test_split_out_of_range_is_refused(number: int) -> None:
    table = Tabular("t", X, Y, ("a", "b"), "y", splits=((np.arange(4), np.arange(4, 5)),))
    with pytest.raises(BadInput, match=f"t has no split {number}; its splits are 0 to 0"):
        table.split(number)


def test_split_must_be_a_whole_number() -> None:
    table = Tabular("t", X, Y, ("a", "b"), "y", splits=((np.arange(4), np.arange(4, 5)),))
    with pytest.raises(BadInput, match=r"number must be a whole number; got 0\.5"):
        table.split(0.5)  # type: ignore[arg-type]


def test_table_without_splits_says_so() -> None:
    with pytest.raises(BadInput, match="t has no published splits; cut its 5 rows"):
        Tabular("t", X, Y, ("a", "b"), "y").split(0)
