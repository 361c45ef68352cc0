"""Letters as zeros and ones."""

from __future__ import annotations

import numpy as np

from doxa.data import Tabular
from doxa.data.formats.one_hot import drop_first, one_hot

LETTERS = Tabular("t", np.array([["b", "p"], ["a", "p"], ["?", "p"], ["b", "p"]]), np.zeros(4), ("u", "v"), "y")


def test_every_letter_has_its_column() -> None:
    coded = one_hot(LETTERS)
    assert coded.columns == ("u=?", "u=a", "u=b", "v=p")
    assert coded.x.tolist() == [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1]]
    assert coded.x.dtype == np.float32


def test_the_first_letter_is_where_the_others_are_not() -> None:
    coded = drop_first(LETTERS)
    assert coded.columns == ("u=a", "u=b")
    assert coded.x.tolist() == [[0, 1], [1, 0], [0, 0], [0, 1]]


def test_all_else_stays() -> None:
    coded = one_hot(LETTERS)
    assert (coded.name, coded.target, coded.y) == (LETTERS.name, LETTERS.target, LETTERS.y)
