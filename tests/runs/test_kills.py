"""A run that is killed at any write goes on by --resume to the bits of one that was not; a damaged one is mended."""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from doxa.errors import BadInput, BrokenFile
from doxa.runs import Plan, keep_result, open_run, read_run_result
from doxa.runs.check import check_run
from doxa.runs.claim import question_digest, require_free_folder
from doxa.runs.folder import read_spec, write_spec
from doxa.storage.lock import folder_lock
from for_runs import AUTO, POINT, bits, learned


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """A process that is forked has no others."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


WRITES = ("replace", "fsync", "unlink", "rmdir", "mkdir")


def learn_and_die(call: int, folder: Path, plan: Plan, resume: bool = False) -> bool:
    """Learn in a process of its own, which ends for good at a call that writes; whether it came to its end."""
    child = os.fork()
    if child == 0:
        calls = 0

        def dying(real: Any) -> Any:
            def write(*arguments: Any, **settings: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == call:
                    os._exit(9)
                return real(*arguments, **settings)

            return write

        for name in WRITES:
            setattr(os, name, dying(getattr(os, name)))
        code = 1
        try:
            learned(folder, plan, resume=resume)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9), "it ended in another way"
    return code == 0


def test_a_run_that_is_killed_at_any_write_goes_on_to_the_same_bits(whole: Path, tmp_path: Path) -> None:
    for call in range(1, 200, 7):  # of the three calls of a write each in its turn
        folder = tmp_path / str(call)
        is_done = learn_and_die(call, folder, POINT)
        assert folder.exists() or call == 1
        if (folder / "manifest.json").exists():
            assert bits(open_run(folder).folder) == bits(whole)
        elif folder.exists():
            with pytest.raises((BadInput, BrokenFile), match=r"holds no run|interrupted"):
                open_run(folder)
        learned(folder, resume=True)
        assert bits(folder) == bits(whole), call
        assert check_run(folder).state == "sealed"
        assert {file.state for file in check_run(folder).files} == {"intact"}, "leftovers are swept"
        if is_done:
            break
    assert is_done
    assert call > 20


def test_the_first_write_leaves_a_folder_that_is_as_good_as_empty(whole: Path, tmp_path: Path) -> None:
    """Killed before run.json was in its place: a temporary file, and a lock that nobody has."""
    folder = tmp_path / "r"
    folder.mkdir()
    for name in (".doxa-0123456789abcdef", ".doxa-lock"):
        (folder / name).write_text("")
    for resume in (False, True):
        require_free_folder(folder, resume)
    assert bits(learned(folder).folder) == bits(whole)
    assert not list(folder.glob(".*"))


def test_resume_begins_where_there_is_nothing(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty"):
        assert bits(learned(tmp_path / name, resume=True).folder) == bits(whole)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds no run"):
        learned(tmp_path / "other", resume=True)


PARTS = ("run.json", "belief.doxa", "table.doxa", "result.json", "manifest.json")


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_resume_mends_a_damaged_run_to_the_same_bits(name: str, damage: str, run: Path, whole: Path) -> None:
    raw = bytearray((run / name).read_bytes())
    raw[len(raw) // 3] ^= 1
    (run / name).unlink()
    if damage == "flipped":
        (run / name).write_bytes(raw)
    said: list[str] = []
    learned(run, resume=True, say=said.append)
    assert any(name in words and words.endswith("this is done now") for words in said)
    assert bits(run) == bits(whole)
    if name not in ("result.json", "manifest.json"):  # a result tells when it was made
        assert (run / "result.json").read_bytes() == (whole / "result.json").read_bytes()
    assert check_run(run).state == "sealed"


def test_resume_trains_again_where_all_is_damaged(run: Path, whole: Path) -> None:
    for path in (run / "belief.doxa", *(run / "training").iterdir()):
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
    said: list[str] = []
    learned(run, resume=True, say=said.append)
    assert any("checkpoint.doxa is damaged too: it is removed" in words for words in said)
    assert bits(run) == bits(whole)
    assert read_run_result(run) == read_run_result(whole)


def test_a_damaged_run_is_not_mended_by_other_arguments(run: Path) -> None:
    (run / "run.json").unlink()
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    other = Plan(net="mlp:3", learner="point", epochs=1, draws=2)
    with pytest.raises(BadInput, match="arguments given are not those of the run"):
        learned(run, other, resume=True)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    with pytest.raises(BadInput, match="already holds a run"):
        learned(run)


def test_a_knob_that_an_older_doxa_lacked_asks_nothing_new(run: Path) -> None:
    spec = read_spec(run)
    older = {**spec, "plan": {name: value for name, value in spec["plan"].items() if name != "antithetic"}}
    assert question_digest(older) == question_digest(spec)
    other = {**spec, "plan": {**spec["plan"], "antithetic": True}}
    assert question_digest(other) != question_digest(spec)


def test_a_belief_that_is_whole_is_not_replaced_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another version of torch may learn, where what was chosen for it is lost."""
    run = learned(tmp_path / "r", AUTO).folder
    (run / "run.json").unlink()
    before = (run / "belief.doxa").read_bytes()
    other = learned(tmp_path / "other", Plan(net="mlp:2", learner="point", epochs=1, draws=2, seed=1)).belief
    module: Any = importlib.import_module("doxa.runs.learn")  # the name is the function's, too
    monkeypatch.setattr(module, "_fit", lambda *_, **__: (other, {}))
    with pytest.raises(BrokenFile, match=r"belief\.doxa is whole, but what was learned again has other bits"):
        learned(run, AUTO, resume=True)
    assert (run / "belief.doxa").read_bytes() == before


def test_words_that_are_damaged_while_it_is_learned_are_written_anew_but_not_by_other_arguments(
    run: Path, whole: Path
) -> None:
    spec = read_spec(run)
    for name in ("manifest.json", "belief.doxa", "table.doxa", "result.json"):
        (run / name).unlink()
    write_spec(run, {**spec, "status": "learning"})
    (run / "run.json").write_bytes((run / "run.json").read_bytes()[:-40])
    other = Plan(net="mlp:3", learner="point", epochs=1, draws=2)
    with pytest.raises(BadInput, match="written for another net"):
        learned(run, other, resume=True)
    learned(run, resume=True)
    assert bits(run) == bits(whole)
    assert check_run(run).state == "sealed"


def test_a_newer_run_is_left_alone(run: Path) -> None:
    (run / "run.json").write_text('{"kind": "doxa run", "version": 99}')
    with pytest.raises(BrokenFile, match="upgrade Doxa"):
        learned(run, resume=True)


def test_a_run_of_the_learner_auto_is_mended_too(tmp_path: Path) -> None:
    whole = learned(tmp_path / "a", AUTO).folder
    run = shutil.copytree(whole, tmp_path / "b")
    (run / "run.json").unlink()
    (run / "belief.doxa").write_bytes(b"")
    learned(run, AUTO, resume=True)
    assert bits(run) == bits(whole)
    assert check_run(run).state == "sealed"


def unsealed(run: Path) -> Path:
    """Make a run look as those of older versions do."""
    spec = json.loads((run / "run.json").read_text())
    del spec["seal"]
    (run / "run.json").write_text(json.dumps({**spec, "version": 1}, indent=1))
    (run / "manifest.json").unlink()
    return run


@pytest.mark.filterwarnings("ignore:.*is not sealed")
@pytest.mark.parametrize("name", ["belief.doxa", "table.doxa", "run.json"])
def test_an_old_run_that_is_damaged_is_mended_and_sealed(name: str, run: Path, whole: Path) -> None:
    unsealed(run)
    raw = (run / name).read_bytes()
    (run / name).write_bytes(raw[: len(raw) // 2])
    learned(run, resume=True)
    assert bits(run) == bits(whole)
    assert check_run(run).state == "sealed"


def test_an_old_run_that_is_whole_is_left_as_it_is(run: Path) -> None:
    unsealed(run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.warns(UserWarning, match="is not sealed"):
        learned(run, resume=True)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_nobody_else_learns_in_a_folder_meanwhile(run: Path, tmp_path: Path) -> None:
    """A process of its own has the lock; as it ends, however it ends, the folder is free."""
    (tmp_path / "r2").mkdir()
    to_parent, to_child = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with folder_lock(run), folder_lock(tmp_path / "r2"):
                os.write(to_parent[1], b"x")
                os.read(to_child[0], 1)
        finally:
            os._exit(9)
    os.read(to_parent[0], 1)
    for folder, resume in ((run, True), (tmp_path / "r2", False)):
        with pytest.raises(BadInput, match=f"is being written by process {child}"):
            learned(folder, resume=resume)
    with pytest.raises(BadInput, match=f"is being written by process {child}"):
        keep_result(run, read_run_result(run))
    open_run(run)
    os.write(to_child[1], b"x")
    os.waitpid(child, 0)
    learned(run, resume=True)
    learned(tmp_path / "r2")
    for end in (*to_parent, *to_child):
        os.close(end)
