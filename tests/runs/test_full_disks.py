"""A disk that is full, or a file that may not be read, at any moment: a run is as it was, or goes on to the same."""

from __future__ import annotations

import builtins
import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from doxa.errors import BrokenFile
from doxa.results import read_result
from doxa.runs import keep_result, open_run, prune_run
from doxa.runs.check import check_run
from doxa.runs.folder import open_whole_run
from for_runs import bits, learned


def fail_at(call: int, monkeypatch: pytest.MonkeyPatch, calls: list[str]) -> None:
    """The disk is full for one call that writes."""

    def failing(name: str, real: Any) -> Any:
        def write(*arguments: Any, **settings: Any) -> Any:
            calls.append(name)
            if len(calls) == call:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments, **settings)

        return write

    for name in ("replace", "fsync"):
        monkeypatch.setattr(os, name, failing(name, getattr(os, name)))


def test_a_run_that_finds_the_disk_full_goes_on_to_the_same_bits(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[str] = []
    for call in range(1, 200, 4):
        calls: list[str] = []
        folder = tmp_path / str(call)
        with monkeypatch.context() as patched:
            fail_at(call, patched, calls)
            try:
                learned(folder)
            except BrokenFile as error:
                errors.append(str(error))
        learned(folder, resume=True)
        assert bits(folder) == bits(whole)
        assert {file.state for file in check_run(folder).files} == {"intact"}
        if len(calls) < call:
            break
    assert len(calls) < call
    assert len(errors) > 2
    assert all("No space left" in words for words in errors)


def test_a_result_that_finds_the_disk_full_leaves_the_run_as_it_was(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = read_result(whole / "result.json")
    pruned = prune_run(open_run(whole), tmp_path / "p", 0.5).folder
    for call in range(1, 50, 2):
        calls: list[str] = []
        folder = shutil.copytree(pruned, tmp_path / f"p{call}")
        with monkeypatch.context() as patched:
            fail_at(call, patched, calls)
            with suppress(BrokenFile):
                keep_result(folder, result)
        open_run(folder)
        keep_result(folder, result)
        assert open_run(folder).result() == result
        if len(calls) < call:
            break
    assert 5 < len(calls) < call


@pytest.mark.parametrize("name", ["run.json", "manifest.json", "table.doxa", "result.json", "belief.doxa"])
def test_what_may_not_be_read_is_neither_called_damaged_nor_made_anew(
    name: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(whole, tmp_path / "r")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    def refusing(real: Any) -> Any:
        def open_file(path: Any, *arguments: Any, **settings: Any) -> Any:
            if isinstance(path, str | Path) and Path(path) == run / name:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return real(path, *arguments, **settings)

        return open_file

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "open", refusing(builtins.open))
        patched.setattr(os, "open", refusing(os.open))
        for use in (lambda: open_whole_run(run), lambda: learned(run, resume=True)):
            with pytest.raises(BrokenFile, match=rf"{name} cannot be read.*Permission denied") as raised:
                use()
            assert "damaged" not in str(raised.value)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
