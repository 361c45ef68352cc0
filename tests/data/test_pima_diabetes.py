"""Diabetes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from doxa.data import pima_diabetes
from doxa.errors import BadInput, BrokenFile

Real = Callable[[str], list[Path]]


def test_real_set_is_the_published_one(real: Real) -> None:
    real("pima_diabetes")
    read = pima_diabetes()
    assert read.x.shape == (768, 8)
    assert np.bincount(read.y).tolist() == [500, 268]
    assert read.classes == ("negative", "positive")
    gaps = dict(zip(read.columns, np.isnan(read.x).sum(0).tolist(), strict=True))
    assert {name: count for name, count in gaps.items() if count} == {
        "glucose": 5,
        "blood_pressure": 35,
        "skin_thickness": 227,
        "insulin": 374,
        "bmi": 11,
    }
    # Means as published with the set, which counts what is missing as zero.
    published = [3.8, 120.9, 69.1, 20.5, 79.8, 32.0, 0.5, 33.2]
    assert np.nan_to_num(read.x).mean(0) == pytest.approx(published, abs=0.05)
    assert read.x[:, read.columns.index("age")].min() == 21


def test_zero_is_missing_only_where_nobody_has_zero(data_folder: Path) -> None:
    path = data_folder / "pima_diabetes" / "pima-indians-diabetes.data"
    path.parent.mkdir()
    path.write_text("0,0,0,0,0,0,0,0,0\n" * 384 + "1,2,3,4,5,6,7,8,1\n" * 384)
    read = pima_diabetes()
    assert np.isnan(read.x[0]).tolist() == [False, True, True, True, True, True, False, False]
    assert read.x[-1].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    path.write_text(path.read_text().replace("8,1\n", "8,2\n"))
    with pytest.raises(BrokenFile, match="row 385 holds '2', expected one of 0, 1"):
        pima_diabetes()
    path.write_text(path.read_text().replace("7,8", "7;8"))
    with pytest.raises(BrokenFile, match="line 385 has 8 columns, expected 9"):
        pima_diabetes()


def test_missing_file_is_said(data_folder: Path) -> None:
    with pytest.raises(BadInput, match=r"pima-indians-diabetes\.data is missing.*doxa data get pima_diabetes"):
        pima_diabetes()
