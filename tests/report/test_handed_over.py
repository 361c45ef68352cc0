"""Results come as files and through pipes that a shell hands over, and from nowhere else."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from doxa.errors import BadInput, BrokenFile
from doxa.results import files, read_result
from doxa_cli.app import main

RESULT = {"name": "belief", "data": {"name": "digits"}, "scores": {"nll": {"value": 0.5, "error": 0.1}}}


def handed_over(content: bytes) -> tuple[str, int]:
    """A pipe that holds this, and is written to no more."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file:
            file.write(content)

    threading.Thread(target=write, daemon=True).start()
    return f"/dev/fd/{reading}", reading


def test_a_result_through_a_pipe_is_the_one_in_the_file() -> None:
    name, reading = handed_over(files.result_bytes(RESULT, "it"))
    try:
        assert read_result(name)["scores"] == RESULT["scores"]
    finally:
        os.close(reading)


def test_a_report_of_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name, reading = handed_over(files.result_bytes(RESULT, "it"))
    try:
        assert main(["report", name, "--quiet"]) == 0
    finally:
        os.close(reading)
    assert "belief" in Path("report.html").read_text()


def test_a_pipe_that_is_cut_short_or_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = files.result_bytes(RESULT, "it")
    name, reading = handed_over(content[:-20])
    with pytest.raises(BrokenFile, match="cut short"):
        read_result(name)
    os.close(reading)
    monkeypatch.setattr(files, "LARGEST", 100)
    name, reading = handed_over(content)
    with pytest.raises(BadInput, match="more than 100 bytes"):
        read_result(name)
    os.close(reading)


@pytest.mark.parametrize("name", ["/dev/zero", "fifo", ".", "nothing", "a\0b"])
def test_what_is_no_file_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    with pytest.raises(BadInput):
        read_result(name)
