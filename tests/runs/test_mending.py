"""A damaged run whose belief is whole is mended without training, whatever else has changed since."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from doxa.errors import BrokenFile
from doxa.runs import open_run, predict_table, read_run_result
from doxa.runs.check import check_run, seal_run
from doxa.runs.claim import question_digest
from doxa.runs.folder import read_spec, was_judged
from doxa.runs.manifest import take_stock, write_manifest
from doxa.storage.json_text import to_sealed_bytes
from for_runs import AUTO, bits, flip, learned

MODULE: Any = importlib.import_module("doxa.runs.learn")  # the name is the function's, too
NEW = {"x": [0.5, -1.0, 50.0]}


def refuse_to_train(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was trained again")

    for name in ("choose", "fit"):
        monkeypatch.setattr(MODULE, name, refused)


@pytest.mark.parametrize("damaged", [("result.json",), ("table.doxa",), ("result.json", "table.doxa"), ("run.json",)])
@pytest.mark.parametrize("has_checkpoints", [True, False])
def test_a_belief_that_is_whole_is_never_learned_again(
    damaged: tuple[str, ...], has_checkpoints: bool, run: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in damaged:
        flip(run / name)
    if not has_checkpoints:
        shutil.rmtree(run / "training")
    refuse_to_train(monkeypatch)
    learned(run, resume=True)
    assert bits(run) == bits(whole)
    assert read_run_result(run)["scores"] == read_run_result(whole)["scores"]
    assert check_run(run).state == "sealed"


def test_words_that_another_doxa_wrote_otherwise_are_kept_as_they_are(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {**read_spec(run), "about": {"source": "é"}}
    (run / "run.json").write_bytes(to_sealed_bytes(words, ensure_ascii=True))
    write_manifest(run, take_stock(run, question_digest(words)))
    before = bits(run)
    flip(run / "result.json")
    refuse_to_train(monkeypatch)
    learned(run, resume=True)
    assert bits(run) == before


def test_choices_of_the_learner_auto_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = learned(tmp_path / "a", AUTO).folder
    before, scores = bits(run), read_run_result(run)["scores"]
    shutil.rmtree(run / "members")
    for name in ("result.json", "table.doxa"):
        (run / name).unlink()
    refuse_to_train(monkeypatch)
    learned(run, AUTO, resume=True)
    assert bits(run) == before
    assert read_run_result(run)["scores"] == scores


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_predictions_do_without_the_result_and_readers_of_it_do_not(damage: str, run: Path, whole: Path) -> None:
    if damage == "flipped":
        flip(run / "result.json")
    else:
        (run / "result.json").unlink()
    with pytest.warns(UserWarning, match=r"result\.json is (damaged|missing).*--resume\. No prediction depends"):
        opened = open_run(run)
    assert predict_table(opened, NEW)["mean"].tolist() == predict_table(open_run(whole), NEW)["mean"].tolist()
    for read in (opened.result, lambda: read_run_result(run), lambda: seal_run(run)):
        with pytest.raises(BrokenFile, match=r"result\.json is (damaged|missing)"):
            read()
    assert was_judged(run), "a judgement on other rows does not take its place"
