"""A run that is interrupted says how to go on, and goes on to the same bytes."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from doxa_cli.app import main

from .small import Command, started

WORDS = ("--target", "price", "--net", "mlp:8", "--learner", "variational", "--draws", "4", "--epochs", "250")


@pytest.fixture(scope="module")
def whole(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The belief of a run that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole") / "r"
    assert main(["fit", str(tables / "houses.csv"), "--out", str(folder), *WORDS, "--quiet"]) == 0
    return (folder / "belief.doxa").read_bytes()


def test_control_c_keeps_what_was_learned_and_resume_goes_on_to_the_same_bytes(
    doxa: Command, tables: Path, whole: bytes
) -> None:
    table = tables / "houses.csv"
    process = started("fit", table, "--out", "cut", *WORDS)
    deadline = time.monotonic() + 60
    while not list(Path("cut").glob("training/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith("doxa: interrupted")
    assert "kept in cut" in last
    assert "--resume" in last
    assert not Path("cut/belief.doxa").exists()
    assert "still being written, or was interrupted" in doxa("judge", "cut").message

    assert "already holds a run" in doxa("fit", table, "--out", "cut", *WORDS).message
    other = doxa("fit", table, "--out", "cut", *WORDS, "--seed", "1", "--resume")
    assert other.code == 1
    assert "has another" in other.message
    changed = doxa("fit", table, "--out", "cut", *WORDS, "--noise", "flipout", "--resume")
    assert "has another plan (noise: local there, flipout here)" in changed.message
    assert doxa("fit", table, "--out", "cut", *WORDS, "--resume", "-q").code == 0
    assert Path("cut/belief.doxa").read_bytes() == whole
    # Going on with what is finished changes nothing.
    assert doxa("fit", table, "--out", "cut", *WORDS, "--resume", "-q").code == 0
    assert Path("cut/belief.doxa").read_bytes() == whole


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_terminated_or_hung_up_fit_is_saved_and_goes_on_to_the_same_bytes(
    number: int, code: int, doxa: Command, tables: Path, whole: bytes
) -> None:
    table = tables / "houses.csv"
    process = started("fit", table, "--out", "cut", *WORDS)
    deadline = time.monotonic() + 60
    while not list(Path("cut").glob("training/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "kept in cut" in err.splitlines()[-1]
    assert doxa("fit", table, "--out", "cut", *WORDS, "--resume", "-q").code == 0
    assert Path("cut/belief.doxa").read_bytes() == whole


def test_control_c_during_the_imports_is_one_line(tables: Path) -> None:
    process = started("fit", tables / "houses.csv", "--out", "r", *WORDS)
    assert process.stderr
    assert process.stderr.readline().startswith("reading ")
    time.sleep(0.3)  # torch is being imported
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("doxa: interrupted")
    assert "Traceback" not in err
    assert not Path("r").exists()
