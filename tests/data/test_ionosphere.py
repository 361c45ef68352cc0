"""Radar returns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from doxa.data import ionosphere
from doxa.errors import BadInput, BrokenFile

Real = Callable[[str], list[Path]]


def test_real_set_is_the_published_one(real: Real) -> None:
    real("ionosphere")
    read = ionosphere()
    assert read.x.shape == (351, 34)
    assert (read.x.dtype, read.y.dtype) == (np.float64, np.int64)
    assert np.bincount(read.y).tolist() == [126, 225]
    assert read.classes == ("bad", "good")
    assert len(set(read.columns)) == 34
    assert (read.x.min(), read.x.max()) == (-1, 1)
    # The second column is all zeros, and alone in that; the first two returns are a good one and a bad one.
    assert np.flatnonzero(read.x.std(0) == 0).tolist() == [1]
    assert read.y[:2].tolist() == [1, 0]


@pytest.fixture
def file_path(data_folder: Path) -> Path:
    path = data_folder / "ionosphere" / "ionosphere.data"
    path.parent.mkdir()
    path.write_text(("0.5," * 34 + "g\n") * 351)
    return path


def test_made_up_file_is_read(file_path: Path) -> None:
    assert ionosphere().y.tolist() == [1] * 351
    assert (ionosphere().x == 0.5).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.5", "half", "row 1, column 1 holds 'half', expected a number"),
        ("0.5,", "", "line 1 has 34 columns, expected 35"),
        ("g\n", "x\n", "row 1 holds 'x', expected one of b, g"),
        ("g\n", "", "line 1 has 69 columns, expected 35"),
    ],
)
def test_wrong_cell_is_refused(file_path: Path, old: str, new: str, message: str) -> None:
    file_path.write_text(file_path.read_text().replace(old, new, 1))
    with pytest.raises(BrokenFile, match=message):
        ionosphere()


def test_missing_file_is_said(data_folder: Path) -> None:
    with pytest.raises(BadInput, match=r"ionosphere/ionosphere\.data is missing.*doxa data get ionosphere"):
        ionosphere()
