"""No text that Doxa writes into a CSV is a formula to a spreadsheet, and Doxa knows it again."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import numpy as np
import pytest

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


def test_a_class_that_begins_with_an_apostrophe_of_its_own_is_itself_first(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("label\n'=x\n=x\n")
    indices, _ = class_labels(read(path), Target("label", "classification", ("=x", "'=x")))
    assert indices.tolist() == [1, 0]
