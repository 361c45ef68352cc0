"""A run is one unit: whatever of it is damaged, missing, longer or foreign is named, and predicts nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doxa.errors import BadInput, BrokenFile
from doxa.results import read_result, write_result
from doxa.runs import keep_result, open_run, predict_table, prune_run, read_run_result
from doxa.runs.folder import open_whole_run, read_spec
from doxa.runs.manifest import FileDigest, read_manifest

PARTS = ("run.json", "belief.doxa", "table.doxa", "result.json", "manifest.json")
STRIDES = {"result.json": 29, "belief.doxa": 7}  # the campaign of faults leaves no byte out
NEW = {"x": [0.5, -1.0, 50.0]}


def test_every_part_is_sealed_and_the_manifest_too(run: Path) -> None:
    manifest = read_manifest(run)
    assert manifest is not None
    assert sorted([*manifest.files, "manifest.json"]) == sorted(PARTS)
    for name in manifest.files:
        assert manifest.digest(name) == FileDigest.of_file(run / name)
    left = sorted((run / "training").iterdir())
    assert manifest.checkpoints == {f"training/{path.name}": FileDigest.of_file(path) for path in left}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("damage", ["missing", "longer", "shorter", "empty", "changed"])
def test_a_damaged_part_is_named_with_how_to_mend_it(name: str, damage: str, run: Path) -> None:
    raw = (run / name).read_bytes()
    middle = len(raw) // 2
    changed = raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]
    contents = {"longer": raw + b" ", "shorter": raw[:-1], "empty": b"", "changed": changed}
    (run / name).unlink()
    if damage in contents:
        (run / name).write_bytes(contents[damage])
    for read in (open_whole_run, read_run_result, *((open_run,) if name != "result.json" else ())):
        with pytest.raises(BrokenFile, match=rf"{name}.*(restore it from a copy|--resume)"):
            read(run)


def flips(path: Path, every: int = 1) -> Iterator[int]:
    """One bit of a file after the other, in place; whole again in the end."""
    raw = path.read_bytes()
    with open(path, "r+b", buffering=0) as file:
        for k in range(0, len(raw), every):
            os.pwrite(file.fileno(), bytes([raw[k] ^ (1 << (k % 8))]), k)
            yield k
            os.pwrite(file.fileno(), raw[k : k + 1], k)
    assert path.read_bytes() == raw


@pytest.mark.parametrize("name", PARTS)
def test_no_flip_in_any_byte_changes_anything_in_silence(name: str, run: Path) -> None:
    for _ in flips(run / name, every=STRIDES.get(name, 1)):
        with pytest.raises(BrokenFile, match=name):
            open_whole_run(run)
    assert open_run(run).result() == read_result(run / "result.json")


def test_a_seal_of_its_own_finds_the_flips_in_the_words_and_the_result_of_a_run(run: Path) -> None:
    """Also where there is no manifest: as a run is learned, and in a result that was written elsewhere."""
    for _ in flips(run / "run.json"):
        with pytest.raises(BrokenFile, match=r"run\.json"):
            read_spec(run)
    for _ in flips(run / "result.json", every=17):
        with pytest.raises(BrokenFile, match=r"result\.json"):
            read_result(run / "result.json")


def test_without_the_table_nothing_is_said_of_rows(run: Path) -> None:
    assert predict_table(open_run(run), NEW)["unlike"].tolist() == [False, False, True]
    (run / "table.doxa").unlink()
    with pytest.raises(BrokenFile, match=r"table\.doxa is missing"):
        open_run(run)
    (run / "manifest.json").unlink()
    unsealed(run)
    with pytest.raises(BrokenFile, match=r"table\.doxa is missing"):
        open_run(run)


def unsealed(run: Path) -> None:
    """Make a run look as those of older versions do."""
    spec = json.loads((run / "run.json").read_text())
    spec.pop("seal")
    (run / "run.json").write_text(json.dumps({**spec, "version": 1}, indent=1))
    (run / "manifest.json").unlink(missing_ok=True)


def test_an_old_run_opens_and_says_that_it_is_unsealed(run: Path) -> None:
    expected = predict_table(open_run(run), NEW)["mean"]
    unsealed(run)
    with pytest.warns(UserWarning, match="is not sealed.*`doxa runs seal"):
        opened = open_run(run)
    assert predict_table(opened, NEW)["mean"].tolist() == expected.tolist()
    assert opened.result()["scores"]


def test_a_result_of_another_run_is_not_taken_for_its_own(run: Path, tmp_path: Path) -> None:
    pruned = prune_run(open_run(run), tmp_path / "p", 0.5).folder
    shutil.copy(run / "result.json", pruned)
    with pytest.raises(BrokenFile, match=r"result\.json is not of this run"):
        read_run_result(pruned)


class Killed(BaseException):
    """In the place of a kill: nothing catches it, and nothing is cleaned up."""


def kill_at(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Die at a call that writes; whatever would be written or removed after it is not."""
    calls = 0

    def dying(real: Any) -> Any:
        def write(*arguments: Any, **settings: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= call:
                raise Killed
            return real(*arguments, **settings)

        return write

    for name in ("replace", "fsync", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))


def test_a_result_is_kept_whole_or_not_at_all(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = read_result(run / "result.json")
    pruned = prune_run(open_run(run), tmp_path / "p", 0.5).folder
    states = set()
    for call in range(1, 40):
        folder = shutil.copytree(pruned, tmp_path / f"p{call}")
        with monkeypatch.context() as patched:
            kill_at(call, patched)
            try:
                keep_result(folder, result)
            except Killed:
                is_done = False
            else:
                is_done = True
        saved_run = open_run(folder)
        if (folder / "result.json").exists():
            assert saved_run.result() == result
        else:
            with pytest.raises(BadInput, match="never judged"):
                saved_run.result()
        states.add((folder / "result.json").exists())
        keep_result(folder, {**result, "name": "again"})
        assert open_run(folder).result()["name"] == "again"
        assert not list(folder.glob(".doxa-*"))
        if is_done:
            break
    assert is_done
    assert states == {False, True}


def test_an_interrupted_pruning_begins_anew(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved_run = open_run(run)
    expected = (prune_run(saved_run, tmp_path / "p", 0.5).folder / "belief.doxa").read_bytes()
    for call in range(1, 60):
        folder = tmp_path / f"p{call}"
        with monkeypatch.context() as patched:
            kill_at(call, patched)
            try:
                prune_run(saved_run, folder, 0.5)
            except Killed:
                pass
            else:
                break
        if not (folder / "manifest.json").exists():
            prune_run(saved_run, folder, 0.5)
        assert (open_run(folder).folder / "belief.doxa").read_bytes() == expected
    else:
        pytest.fail("it never came to an end")
    with pytest.raises(BadInput, match="is there already"):
        prune_run(saved_run, tmp_path / "p", 0.5)


@pytest.mark.filterwarnings("ignore:.*is not sealed")
def test_a_pruned_run_of_an_older_doxa_is_no_interrupted_pruning(run: Path, tmp_path: Path) -> None:
    saved_run = open_run(run)
    pruned = prune_run(saved_run, tmp_path / "p", 0.5).folder
    shutil.copy(run / "result.json", pruned)
    unsealed(pruned)
    before = {path.name: path.read_bytes() for path in pruned.iterdir()}
    with pytest.raises(BadInput, match="is there already"):
        prune_run(saved_run, pruned, 0.5)
    assert {path.name: path.read_bytes() for path in pruned.iterdir()} == before
    spec = read_spec(pruned)
    (pruned / "run.json").write_text(json.dumps({**spec, "status": "learning"}))
    assert read_manifest(prune_run(saved_run, pruned, 0.5).folder) is not None


def test_what_is_written_elsewhere_is_sealed_too(tmp_path: Path, run: Path) -> None:
    write_result(tmp_path / "a.json", read_result(run / "result.json"))
    assert (tmp_path / "a.json").read_bytes() == (run / "result.json").read_bytes()
