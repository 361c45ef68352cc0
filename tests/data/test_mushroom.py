"""Mushrooms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from doxa.data import Tabular, mushroom
from doxa.data.sets.mushroom import LETTERS
from doxa.errors import BadInput, BrokenFile

Real = Callable[[str], list[Path]]


def decoded(coded: Tabular) -> np.ndarray:
    """The letters again: of each trait the one marked, or, where none is, the first."""
    letters = np.empty((len(coded.x), len(LETTERS)), "<U1")
    for column_index, (trait, letters_of_trait) in enumerate(LETTERS.items()):
        marked = {name[-1]: coded.x[:, index] for index, name in enumerate(coded.columns) if name[:-2] == trait}
        assert sum(marked.values(), np.zeros(len(coded.x))).max() <= 1
        letters[:, column_index] = letters_of_trait[0]
        for letter, present in marked.items():
            letters[present == 1, column_index] = letter
    return letters


def test_real_set_is_the_published_one(real: Real) -> None:
    real("mushroom")
    read = mushroom("letters")
    assert read.x.shape == (8124, 22)
    assert np.bincount(read.y).tolist() == [4208, 3916]
    assert (read.task, read.classes) == ("classification", ("edible", "poisonous"))
    assert (read.x[:, read.columns.index("stalk-root")] == "?").sum() == (read.x == "?").sum() == 2480
    # All that smell foul, fishy, spicy, pungent, musty or of creosote are poisonous; of almond or anise, edible.
    odour = read.x[:, read.columns.index("odor")]
    assert read.y[np.isin(odour, list("fyspmc"))].all()
    assert not read.y[np.isin(odour, list("al"))].any()


def test_every_known_letter_occurs(real: Real) -> None:
    real("mushroom")
    read = mushroom("letters")
    for column, letters_of_trait in zip(read.x.T, LETTERS.values(), strict=True):
        assert "".join(np.unique(column)) == letters_of_trait


@pytest.mark.parametrize(("encoding", "width"), [("one_hot", 117), ("drop_first", 95)])
def test_encodings_have_their_widths_and_invert(real: Real, encoding: str, width: int) -> None:
    real("mushroom")
    coded, letters = mushroom(encoding), mushroom("letters")
    assert coded.x.shape == (8124, width)
    assert len(coded.columns) == width
    assert coded.x.dtype == np.float32
    assert np.isin(coded.x, (0, 1)).all()
    assert np.array_equal(decoded(coded), letters.x)
    assert np.array_equal(coded.y, letters.y)


def test_one_hot_marks_one_letter_of_each_trait(real: Real) -> None:
    real("mushroom")
    assert (mushroom().x.sum(1) == 22).all()


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(BadInput, match="no encoding 'onehot'; did you mean 'one_hot'"):
        mushroom("onehot")


@pytest.fixture
def file_path(data_folder: Path) -> Path:
    """As many mushrooms as there should be, all the same."""
    path = data_folder / "mushroom" / "agaricus-lepiota.data"
    path.parent.mkdir()
    path.write_text(
        ",".join(["p", *(letters_of_trait[0] for letters_of_trait in LETTERS.values())]).join(["", "\n"]) * 8124
    )
    return path


def change(path: Path, line: int, old: str, new: str) -> None:
    lines = path.read_text().splitlines()
    lines[line] = lines[line].replace(old, new, 1)
    path.write_text("\n".join(lines))


def test_made_up_file_is_read(file_path: Path) -> None:
    assert mushroom("letters").x[0].tolist() == [letters_of_trait[0] for letters_of_trait in LETTERS.values()]
    assert mushroom("letters").y.all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("p,b", "x,b", "row 18 holds 'x', expected one of e, p"),
        ("p,b", "p,z", "its column cap-shape holds 'z', expected one of b, c, f, k, s, x"),
        ("p,b", "p,bb", "its column cap-shape holds 'bb'"),
        ("p,b", "p", "line 18 has 22 columns, expected 23"),
    ],
)
def test_wrong_cell_is_refused(file_path: Path, old: str, new: str, message: str) -> None:
    change(file_path, 17, old, new)
    with pytest.raises(BrokenFile, match=message) as caught:
        mushroom()
    assert str(caught.value).startswith(str(file_path))


def test_truncated_file_is_refused(file_path: Path) -> None:
    file_path.write_text("".join(file_path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(BrokenFile, match="it has 8123 rows, expected 8124"):
        mushroom()


def test_missing_file_is_said(data_folder: Path) -> None:
    with pytest.raises(BadInput) as caught:
        mushroom()
    assert str(caught.value).startswith(
        f"the file {data_folder}/mushroom/agaricus-lepiota.data is missing; put it there, from https://archive.ics.uci.edu/"
    )
    assert "or run: doxa data get mushroom" in str(caught.value)
