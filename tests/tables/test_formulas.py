"""No text that Doxa writes into a CSV is a formula to a spreadsheet, and Doxa knows it again."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import numpy as np
import pytest

from doxa.errors import BadInput
from doxa.runs import write_csv
from doxa.tables import Target, class_labels, quote_formula, read, unquote_formula

FORMULAS = ["=1+2", "@sum(A1)", "+x", "-x", "-", "\tx", "\rx", "\nx", "-1+1", "=", "＝1", "-inf", "+1e", "-1_0", "--1"]
PLAIN = ["-1", "+1.5", "-.5e-3", "1", "", "x", "x=1", "'x", "p(=1)", " =1", "a-b", "0"]


@pytest.mark.parametrize("text", FORMULAS)
def test_what_begins_like_a_formula_gets_an_apostrophe(text: str) -> None:
    assert quote_formula(text) == f"'{text}"
    assert unquote_formula(f"'{text}") == text


@pytest.mark.parametrize("text", PLAIN)
def test_plain_numbers_and_words_stay_as_they_are(text: str) -> None:
    assert quote_formula(text) == unquote_formula(text) == text


def test_no_two_texts_become_one() -> None:
    rng = random.Random(0)
    texts = {"".join(rng.choices("'=-1x", k=rng.randrange(1, 5))) for _ in range(400)}
    written = {quote_formula(text) for text in texts}
    assert len(written) == len(texts)
    assert {unquote_formula(text) for text in written} == texts


def test_classes_in_a_file_of_predictions_are_harmless_and_known_again(tmp_path: Path) -> None:
    classes = ("=cmd|'/c calc'!A1", "@x", "+1 up", "-1", "plain")
    labels = np.array([*classes, classes[0]], dtype=object)
    path = tmp_path / "predictions.csv"
    write_csv(path, {"label": labels, "=p": np.zeros(6), "unlike": np.zeros(6, bool)})
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["label", "'=p", "unlike"]
    assert [row[0] for row in rows[1:]] == ["'=cmd|'/c calc'!A1", "'@x", "'+1 up", "-1", "plain", "'=cmd|'/c calc'!A1"]
    indices, _ = class_labels(read(path), Target("label", "classification", classes))
    assert indices.tolist() == [0, 1, 2, 3, 4, 0]


@pytest.mark.parametrize("mark", list(',;|\t\r\n"'))
def test_what_may_divide_cells_is_in_quotation_marks(tmp_path: Path, mark: str) -> None:
    text, path = f"a{mark}=1+1", tmp_path / "predictions.csv"
    write_csv(path, {text: np.array([text, "plain"], dtype=object), "unlike": np.zeros(2, bool)})
    quoted = '"' + text.replace('"', '""') + '"'
    assert path.read_bytes().decode() == f"{quoted},unlike\r\n{quoted},no\r\nplain,no\r\n"
    with open(path, newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [[text, "unlike"], [text, "no"], ["plain", "no"]]


def test_an_empty_cell_alone_is_still_a_row(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", {"a": np.array(["", "x"], dtype=object)})
    assert (tmp_path / "a.csv").read_bytes() == b'a\r\n""\r\nx\r\n'


def judged(path: Path, labels: list[str], classes: tuple[str, ...]) -> list[int]:
    """The classes that a column of labels is read as."""
    path.write_text("\n".join(["label", *labels]) + "\n")
    return class_labels(read(path), Target("label", "classification", classes))[0].tolist()


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["'=x", "=x"], ("=x", "'=x"), [1, 0]),  # nothing that Doxa wrote has a formula without an apostrophe
        (["'=x", "''=x"], ("=x", "'=x"), [0, 1]),
        (["''=x", "''=x"], ("=x", "'=x"), [1, 1]),
        (["'=x", "'=y", "z"], ("=x", "'=x", "=y", "z"), [0, 2, 3]),
        (["'=x", "y"], ("=x", "y"), [0, 1]),
        (["'=x", "y"], ("'=x", "y"), [0, 1]),
        (["'=x", "1.0"], ("1", "=x"), [1, 0]),
        (["z", "x"], ("x", "z"), [1, 0]),
    ],
)
def test_a_column_is_read_as_it_stands_or_as_doxa_writes_it(
    tmp_path: Path, labels: list[str], classes: tuple[str, ...], expected: list[int]
) -> None:
    assert judged(tmp_path / "rows.csv", labels, classes) == expected


def test_what_predict_writes_of_any_classes_is_read_as_them(tmp_path: Path) -> None:
    rng = random.Random(1)
    for _ in range(50):
        classes = tuple(dict.fromkeys("".join(rng.choices("'=x", k=rng.randrange(1, 4))) for _ in range(6)))
        labels = list(map(quote_formula, classes))
        assert judged(tmp_path / "rows.csv", labels, classes) == [*range(len(classes))]


def test_an_apostrophe_that_may_be_of_either_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"""has the class "'=x", which may be itself, or '=x' as Doxa writes it"""):
        judged(tmp_path / "rows.csv", ["'=x", "y"], ("=x", "'=x", "y"))


@pytest.mark.parametrize(
    ("labels", "classes", "unknown"),
    [
        (["=x", "'=x"], ("=x",), "'=x"),  # the second is new: the first has no apostrophe
        (["'=x", "w"], ("=x", "y"), "w"),
        (["w", "'=x"], ("'=x", "y"), "w"),
        (["'-1"], ("-1", "y"), "'-1"),  # a plain number never gets an apostrophe
    ],
)
def test_a_class_that_training_never_had_is_refused_by_its_name(
    tmp_path: Path, labels: list[str], classes: tuple[str, ...], unknown: str
) -> None:
    with pytest.raises(BadInput, match="a class that training never had: ") as refused:
        judged(tmp_path / "rows.csv", labels, classes)
    assert f"never had: {unknown!r};" in str(refused.value)
