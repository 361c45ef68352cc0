"""Whoever reads a run while its result is replaced sees the old one or the new one, and never damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doxa.errors import BrokenFile
from doxa.results import read_result
from doxa.runs import keep_result, open_run, read_run_result
from doxa.runs import manifest as of_manifest
from doxa.runs.check import check_run
from doxa.runs.folder import open_whole_run
from doxa.runs.manifest import FileDigest, Manifest


def keep_before_each_look(run: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Another process keeps a result after the manifest was read, and before the files are compared with it."""
    look = of_manifest.find_damage
    result, names = read_result(run / "result.json"), list[str]()

    def interrupted(folder: Path, manifest: Manifest, *arguments: Any) -> dict[str, str]:
        if len(names) < times:
            names.append(f"kept{'!' * len(names)}")
            keep_result(run, {**result, "name": names[-1]})
        return look(folder, manifest, *arguments)

    monkeypatch.setattr(of_manifest, "find_damage", interrupted)
    return names


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("times", [1, 3])
def test_a_result_that_is_replaced_meanwhile_is_no_damage(
    times: int, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for read in (
        lambda: read_run_result(run)["name"],
        lambda: open_whole_run(run).result()["name"],
        lambda: open_run(run).result()["name"],
    ):
        with monkeypatch.context() as patched:
            names = keep_before_each_look(run, times, patched)
            assert read() == names[-1]
            assert len(names) == times


def test_a_check_meanwhile_finds_no_damage(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = keep_before_each_look(run, 2, monkeypatch)
    assert check_run(run).state == "sealed"
    assert len(names) == 2


def test_damage_is_told_once_the_manifest_stands_still_and_by_a_bound(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "run.json").write_bytes((run / "run.json").read_bytes() + b" ")
    manifest = of_manifest.read_manifest(run)
    assert manifest is not None
    with pytest.raises(BrokenFile, match=r"run\.json is damaged"):
        of_manifest.require_whole_run(run, manifest)
    reads: list[int] = []

    def never_the_same(folder: Path) -> Manifest:
        reads.append(len(reads))
        return Manifest({**manifest.files, "result.json": (FileDigest(len(reads), ""),)})

    monkeypatch.setattr(of_manifest, "read_manifest", never_the_same)
    with pytest.raises(BrokenFile, match=r"run\.json is damaged"):
        of_manifest.require_whole_run(run, manifest)
    assert 1 < len(reads) < 100
