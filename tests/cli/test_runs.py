"""`doxa runs check` and `doxa runs seal`."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doxa.runs.folder import read_spec, write_spec
from doxa.runs.manifest import read_manifest, write_manifest
from doxa.storage.lock import folder_lock

from .small import Command


def checked(doxa: Command, folder: Path) -> tuple[int, str, dict[str, str]]:
    ended = doxa("runs", "check", folder, "--json")
    found: dict[str, Any] = json.loads(ended.out)
    return ended.code, found["state"], {file["name"]: file["state"] for file in found["files"]}


@pytest.fixture
def run(runs: Path, tmp_path: Path) -> Path:
    return shutil.copytree(runs / "digits", tmp_path / "r")


def unsealed(run: Path) -> Path:
    """Make a run look as those of older versions do."""
    spec = json.loads((run / "run.json").read_text())
    del spec["seal"]
    (run / "run.json").write_text(json.dumps({**spec, "version": 1}, indent=1))
    (run / "manifest.json").unlink()
    return run


def test_a_run_that_was_just_learned_is_whole(doxa: Command, runs: Path) -> None:
    for name in ("houses", "digits"):
        code, state, files = checked(doxa, runs / name)
        assert (code, state, {*files.values()}) == (0, "sealed", {"intact"})
        on_disk = {str(path.relative_to(runs / name)) for path in (runs / name).rglob("*") if path.is_file()}
        assert files.keys() == on_disk
    ended = doxa("runs", "check", runs / "houses")
    assert ended.out.splitlines()[-1] == f"{runs / 'houses'} is sealed"
    assert doxa("runs", "check", runs / "houses", "-q").out == ""


@pytest.mark.parametrize(
    "name", ["run.json", "belief.doxa", "result.json", "manifest.json", "training/checkpoint.doxa"]
)
def test_damage_is_found_in_every_file(name: str, doxa: Command, run: Path) -> None:
    path = run / name
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)
    code, state, files = checked(doxa, run)
    assert (code, state, files[name]) == (1, "damaged", "damaged")
    assert [file for file, found in files.items() if found == "damaged"] == [name]
    ended = doxa("runs", "check", run, "-q")
    assert ended.code == 1
    assert f"damaged   {name}: " in ended.out
    assert ended.out.splitlines()[-1].startswith(f"{run} is damaged: restore it from a copy")


def test_what_is_missing_left_over_removed_or_foreign_is_told_apart(doxa: Command, run: Path) -> None:
    (run / "training" / ".doxa-0123456789abcdef").write_bytes(b"cut")
    (run / "notes.txt").write_text("mine")
    (run / "training" / "checkpoint.doxa").unlink()
    code, state, files = checked(doxa, run)
    assert (code, state) == (0, "sealed")
    assert files["training/.doxa-0123456789abcdef"] == "temporary"
    assert files["notes.txt"] == "foreign"
    assert files["training/checkpoint.doxa"] == "removed"
    (run / "result.json").unlink()
    code, state, files = checked(doxa, run)
    assert (code, state, files["result.json"]) == (1, "damaged", "missing")


def test_an_unfinished_run_is_no_whole_one(doxa: Command, run: Path) -> None:
    (run / "manifest.json").unlink()
    write_spec(run, {**read_spec(run), "status": "learning"})
    code, state, files = checked(doxa, run)
    assert (code, state, files["training/checkpoint.doxa"]) == (1, "unfinished", "unsealed")
    (run / "training" / "checkpoint.doxa").write_bytes(b"")
    assert checked(doxa, run)[1] == "damaged"


def test_an_old_run_is_unsealed_until_it_is_sealed(doxa: Command, run: Path, runs: Path) -> None:
    unsealed(run)
    assert checked(doxa, run)[:2] == (0, "unsealed")
    assert "is not sealed" in doxa("judge", run).err
    ended = doxa("runs", "seal", run)
    assert ended.out == f"{run} is sealed\n"
    code, state, files = checked(doxa, run)
    assert (code, state, {*files.values()}) == (0, "sealed", {"intact"})
    assert (run / "run.json").read_bytes() == (runs / "digits" / "run.json").read_bytes()
    assert "not sealed" not in doxa("judge", run).err
    assert "is sealed already" in doxa("runs", "seal", run).err


def test_what_is_damaged_or_unfinished_is_not_sealed(doxa: Command, run: Path) -> None:
    unsealed(run)
    raw = (run / "belief.doxa").read_bytes()
    (run / "belief.doxa").write_bytes(raw[:-1])
    assert "belief.doxa is damaged or missing" in doxa("runs", "seal", run).message
    (run / "belief.doxa").write_bytes(raw)
    write_spec(run, {**read_spec(run), "status": "learning"})
    assert "go on with the same `doxa fit` and --resume" in doxa("runs", "seal", run).message
    assert not (run / "manifest.json").exists()
    assert "there is no run nowhere" in doxa("runs", "check", "nowhere").message


def test_a_result_that_cannot_be_kept_is_printed_all_the_same(doxa: Command, run: Path, tables: Path) -> None:
    assert doxa("prune", run, "--out", "p", "--samples", "2", "-q").code == 0
    shutil.copytree("p", "q")
    manifest = read_manifest(Path("q"))
    assert manifest is not None
    write_manifest(Path("q"), replace(manifest, files={k: v for k, v in manifest.files.items() if k != "result.json"}))
    Path("q/result.json").unlink()
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with folder_lock(Path("q")):
            is_held.set()
            is_over.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert is_held.wait(60)
        ended = doxa("judge", "q", "--samples", "2")
    finally:
        is_over.set()
        holder.join()
    assert ended.code == 0
    assert "the result cannot be kept in the run: q is being written by another thread" in ended.err
    assert not Path("q/result.json").exists()
    assert "kept in q/result.json" in doxa("judge", "q", "--samples", "2").err
    assert checked(doxa, Path("q"))[:2] == (0, "sealed")


def test_a_damaged_run_is_refused_by_every_command_in_one_line(doxa: Command, run: Path) -> None:
    raw = bytearray((run / "run.json").read_bytes())
    raw[len(raw) // 2] ^= 1
    (run / "run.json").write_bytes(raw)
    for command in ("judge", "prune", "attack", "report", "predict"):
        ended = doxa(command, run, *(["rows.csv"] if command == "predict" else []))
        assert ended.code == 1
        assert f"{run / 'run.json'} is damaged" in ended.message
        assert "--resume" in ended.message
    assert "is damaged" in doxa("runs", "seal", run).message


def test_a_damaged_result_keeps_nobody_from_predicting_or_judging_anew(
    doxa: Command, runs: Path, tables: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(runs / "houses", tmp_path / "h")
    table = tables / "houses.csv"
    whole = doxa("predict", run, table, "--samples", "2", "-q")
    for damage in (b"{}", None):
        (run / "result.json").unlink()
        if damage is not None:
            (run / "result.json").write_bytes(damage)
        predicted = doxa("predict", run, table, "--samples", "2")
        assert (predicted.code, predicted.out) == (0, whole.out)
        assert "No prediction depends on it" in predicted.err
        assert doxa("judge", run, table, "--samples", "2").code == 0
        for command in ("judge", "report"):
            ended = doxa(command, run)
            assert ended.code == 1
            assert "result.json is" in ended.message
            assert "--resume" in ended.message
        assert checked(doxa, run)[:2] == (1, "damaged")
