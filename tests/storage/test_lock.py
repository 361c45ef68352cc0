"""One writer in a folder, and files that are there whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from doxa.errors import BadInput, BrokenFile
from doxa.storage.disk import atomic_write
from doxa.storage.lock import LOCK, folder_lock
from for_locks import HOLD, hold_lock
from for_processes import run_script


def test_a_lock_that_its_owner_left_behind_is_taken_over(tmp_path: Path) -> None:
    process = hold_lock(tmp_path)
    with process:
        process.kill()
        process.wait()
    assert (tmp_path / LOCK).exists()
    with folder_lock(tmp_path):
        owner = json.loads((tmp_path / LOCK).read_text())
        assert owner["process"] == os.getpid()
    assert not (tmp_path / LOCK).exists()


def test_children_that_outlive_their_parent_a_little_are_waited_for(tmp_path: Path) -> None:
    """A process that was forked has the lock of its parent for as long as it lives, as a DataLoader's workers have."""
    forking = HOLD.replace("    print(", "    import os, time; os.fork() or (time.sleep(1.5), os._exit(0))\n    print(")
    process = subprocess.Popen(
        [sys.executable, "-c", forking, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        process.kill()
        process.wait()
        with folder_lock(tmp_path):
            assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()


def test_a_lock_is_its_threads_own(tmp_path: Path) -> None:
    refusals = []

    def enter() -> None:
        try:
            with folder_lock(tmp_path):
                pass
        except BadInput as error:
            refusals.append(str(error))

    with folder_lock(tmp_path):
        with folder_lock(tmp_path / "." / ""):
            pass
        assert (tmp_path / LOCK).exists(), "who went in twice has it until both are over"
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(refusals) == 1
    assert "another thread" in refusals[0]
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert len(refusals) == 1


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_lock_that_leads_elsewhere_is_not_written_to(link: Callable[[Path, Path], None], tmp_path: Path) -> None:
    """As in a folder that came from somebody who means harm."""
    victim, folder = tmp_path / "victim", tmp_path / "run"
    victim.write_text("mine")
    folder.mkdir()
    link(folder / LOCK, victim)
    with pytest.raises(BrokenFile, match="leads elsewhere"), folder_lock(folder):
        pass
    assert victim.read_text() == "mine"


def test_a_lock_outlives_those_who_read_it(tmp_path: Path) -> None:
    with folder_lock(tmp_path):
        (tmp_path / LOCK).read_bytes()
        code = "import sys; from pathlib import Path; from doxa.storage.lock import folder_lock\n"
        code += "with folder_lock(Path(sys.argv[1])): pass"
        other = run_script(code, tmp_path, environment=os.environ, check=False)
        assert f"is being written by process {os.getpid()}" in other.stderr


def test_a_lock_that_could_not_be_had_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    for _ in range(2):
        with pytest.raises(BadInput, match="is a file"), folder_lock(tmp_path / "a"):
            pass


def test_what_somebody_is_writing_is_not_swept(tmp_path: Path) -> None:
    """A belief that is saved by another process, or thread, which has no lock."""
    with atomic_write(tmp_path / "mine") as file:
        with folder_lock(tmp_path):
            file.write("all of it")
        assert len([*tmp_path.iterdir()]) == 1
    assert (tmp_path / "mine").read_text() == "all of it"


def test_a_folder_that_nothing_was_written_to_is_as_if_it_had_never_been(tmp_path: Path) -> None:
    with folder_lock(tmp_path / "new"):
        pass
    assert not (tmp_path / "new").exists()


def test_what_is_replaced_is_kept_beside_if_asked(tmp_path: Path) -> None:
    path, older = tmp_path / "a", tmp_path / "b"
    for text in ("1", "2", "3"):
        with atomic_write(path, keep_as=older) as file:
            file.write(text)
    assert (path.read_text(), older.read_text()) == ("3", "2")
    with pytest.raises(TypeError), atomic_write(path, keep_as=older) as file:
        file.write(4)
    assert (path.read_text(), older.read_text()) == ("3", "2")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
