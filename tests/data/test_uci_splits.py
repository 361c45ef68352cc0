"""The customary splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from doxa.data.sets.uci_splits import read_splits, standard_splits
from doxa.errors import BadInput, BrokenFile


def write(folder: Path, splits: tuple[tuple[np.ndarray, np.ndarray], ...]) -> None:
    for number, parts in enumerate(splits):
        for part, index in zip(("train", "test"), parts, strict=True):
            (folder / f"index_{part}_{number}.txt").write_text("".join(f"{row}\n" for row in index))


def test_standard_splits_are_disjoint_whole_nine_to_one_and_different() -> None:
    splits = standard_splits(506, 20)
    assert len(splits) == 20
    for train, test in splits:
        assert (len(train), len(test)) == (455, 51)
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(506))
    assert len({tuple(test) for _, test in splits}) == 20


def test_splits_are_read_in_the_order_they_are_stored(tmp_path: Path) -> None:
    splits = standard_splits(30, 2)
    write(tmp_path, splits)
    for (train, test), (train_made, test_made) in zip(read_splits(tmp_path, 30, 2), splits, strict=True):
        assert np.array_equal(train, train_made)
        assert np.array_equal(test, test_made)
        assert train.dtype == test.dtype == np.int64


def test_other_files_are_no_splits(tmp_path: Path) -> None:
    (tmp_path / "index_target.txt").write_text("13\n")
    (tmp_path / "index_features.txt").write_text("0\n")
    assert read_splits(tmp_path, 30, 2) is None


def test_missing_split_is_named(tmp_path: Path) -> None:
    write(tmp_path, standard_splits(30, 2))
    (tmp_path / "index_test_1.txt").unlink()
    with pytest.raises(BadInput, match=r"index_test_1\.txt is missing though other splits are there; put it there"):
        read_splits(tmp_path, 30, 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("7", "30", "it holds the index 30, expected whole numbers from 0 to 29"),
        ("7", "-1", "it holds the index -1, expected"),
        ("7", "7.5", r"it holds the index 7\.5, expected"),
        ("7", "seven", "holds 'seven', expected a number"),
        ("7", "8", "row 7 is 0 times in it and index_train_0.txt together, expected once"),
        ("7", "3\n7", "row 3 is 2 times"),
        ("7", "", "row 7 is 0 times"),
    ],
)
def test_wrong_index_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    write(tmp_path, ((np.arange(20), np.arange(20, 30)),))
    path = tmp_path / "index_train_0.txt"
    path.write_text(path.read_text().replace(f"\n{old}\n", f"\n{new}\n"))
    with pytest.raises(BrokenFile, match=message):
        read_splits(tmp_path, 30, 1)


def test_empty_index_is_refused(tmp_path: Path) -> None:
    write(tmp_path, ((np.arange(20), np.arange(20, 30)),))
    (tmp_path / "index_test_0.txt").write_text("")
    with pytest.raises(BrokenFile, match="row 20 is 0 times"):
        read_splits(tmp_path, 30, 1)
