"""The regression sets of the UCI benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from doxa.data import Tabular, uci_regression
from doxa.data.sets.uci_regression_sets import SETS
from doxa.data.sets.uci_splits import standard_splits
from doxa.errors import BadInput, BrokenFile

Real = Callable[[str], list[Path]]
Loads = Callable[[str], Tabular]

# Rows, features, and of the target: least, greatest, mean and standard deviation, as customarily quoted.
KNOWN = {
    "bostonHousing": (506, 13, 5.0, 50.0, 22.53, 9.19),
    "concrete": (1030, 8, 2.33, 82.6, 35.82, 16.70),
    "kin8nm": (8192, 8, 0.0402, 1.4585, 0.714, 0.264),
    "naval-propulsion-plant": (11_934, 16, 0.95, 1.0, 0.975, 0.0147),
    "power-plant": (9568, 4, 420.26, 495.76, 454.37, 17.07),
    "protein-tertiary-structure": (45_730, 9, 0.0, 20.999, 7.7485, 6.118),
    "wine-quality-red": (1599, 11, 3.0, 8.0, 5.636, 0.807),
}


@pytest.mark.parametrize("name", SETS)
def test_real_set_has_the_right_target_features_and_splits(real: Real, loads: Loads, name: str) -> None:
    (path,) = real(f"uci_regression/{name}")
    read = loads(f"uci_regression/{name}")
    rows, width, least, greatest, mean, deviation = KNOWN[name]
    assert read.x.shape == (rows, width)
    assert read.y.shape == (rows,)
    assert (len(read.columns), read.task) == (width, "regression")
    assert (read.y.min(), read.y.max()) == pytest.approx((least, greatest), abs=5e-5)
    assert (read.y.mean(), read.y.std()) == pytest.approx((mean, deviation), rel=2e-3)

    # The columns are those that the benchmark's own files select, in that order.
    stored = np.loadtxt(path)
    chosen = np.loadtxt(path.with_name("index_features.txt"), int)
    assert np.array_equal(read.x, stored[:, chosen])
    assert np.array_equal(read.y, stored[:, int(path.with_name("index_target.txt").read_text())])

    # Drawn again they are the published ones, row by row, so nobody needs to fetch those.
    assert len(read.splits) == (5 if name.startswith("protein") else 20)
    for published, drawn in zip(read.splits, standard_splits(rows, len(read.splits)), strict=True):
        assert np.array_equal(published[0], drawn[0])
        assert np.array_equal(published[1], drawn[1])


def test_real_features_are_what_their_names_say(loads: Loads) -> None:
    boston = loads("uci_regression/bostonHousing")
    column = dict(zip(boston.columns, boston.x.T, strict=True))
    assert np.unique(column["CHAS"]).tolist() == [0, 1]
    assert (column["RM"].mean(), column["B"].max()) == pytest.approx((6.28, 396.9), abs=0.01)
    plant = loads("uci_regression/power-plant")
    ranges = dict(zip(plant.columns, zip(plant.x.min(0), plant.x.max(0), strict=True), strict=True))
    assert ranges["temperature"] == (1.81, 37.11)
    assert ranges["relative_humidity"] == (25.56, 100.16)
    assert 990 < ranges["ambient_pressure"][0] < ranges["ambient_pressure"][1] < 1035
    wine = loads("uci_regression/wine-quality-red")
    column = dict(zip(wine.columns, wine.x.T, strict=True))
    assert 2.7 < column["pH"].min() < column["pH"].max() < 4.1
    assert 8 < column["alcohol"].min() < column["alcohol"].max() < 15


@pytest.fixture
def file_path(data_folder: Path) -> Path:
    """Boston without splits: in each row its number, thirteen times, then the number's square."""
    path = data_folder / "uci_regression" / "bostonHousing" / "data" / "data.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(" ".join([str(row)] * 13 + [str(row**2)]) + "\n" for row in range(506)))
    return path


def test_without_index_files_the_splits_are_the_standard_ones(file_path: Path) -> None:
    read = uci_regression("bostonHousing")
    (x, y), (x_test, y_test) = read.split(19)
    assert np.array_equal(x[:, 0] ** 2, y)
    assert np.array_equal(np.sort(np.concatenate([x[:, 0], x_test[:, 0]])), np.arange(506))
    assert y_test.tolist() == (standard_splits(506, 20)[19][1] ** 2).tolist()


def test_index_files_beside_the_data_come_first(file_path: Path) -> None:
    for number in range(20):
        file_path.with_name(f"index_train_{number}.txt").write_text("\n".join(map(str, range(number + 1, 506))))
        file_path.with_name(f"index_test_{number}.txt").write_text("\n".join(map(str, range(number + 1))))
    assert uci_regression("bostonHousing").splits[3][1].tolist() == [0, 1, 2, 3]
    file_path.with_name("index_test_7.txt").write_text("506\n")
    with pytest.raises(BrokenFile, match=r"index_test_7\.txt .* it holds the index 506, expected .* 0 to 505"):
        uci_regression("bostonHousing")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\n7 7 ", "\n7 ", "line 8 has 13 columns, expected 14"),
        ("\n7 7 ", "\n7 7 7 ", "line 8 has 15 columns, expected 14"),
        ("\n7 7 ", "\n7 seven ", "row 8, column 2 holds 'seven', expected a number"),
        (" 255025\n", " 255025\n" + "1 " * 14, "it has 507 rows, expected 506"),
    ],
)
def test_wrong_file_is_refused(file_path: Path, old: str, new: str, message: str) -> None:
    file_path.write_text(file_path.read_text().replace(old, new))
    with pytest.raises(BrokenFile, match=message):
        uci_regression("bostonHousing")


def test_unknown_set_is_refused() -> None:
    with pytest.raises(BadInput, match=r"no regression set 'boston'; did you mean 'bostonHousing'\?"):
        uci_regression("boston")


def test_missing_file_is_said(data_folder: Path) -> None:
    with pytest.raises(BadInput, match=r"concrete/data/data\.txt is missing; .* doxa data get uci_regression/concrete"):
        uci_regression("concrete")
