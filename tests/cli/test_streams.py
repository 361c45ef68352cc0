"""Streams that are closed, full or left by their reader end no command as a fault of Doxa."""

from __future__ import annotations

import subprocess
import sys

import pytest

STARTED = f"exec {sys.executable} -m doxa_cli "


def ended(line: str) -> subprocess.CompletedProcess[str]:
    """How a shell's command line ended."""
    return subprocess.run(["bash", "-c", STARTED + line], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("command", "code", "closed"),
    [
        ("bench", 0, ">&-"),
        ("bench", 0, "<&- >&- 2>&-"),
        ("--help", 0, ">&-"),
        ("fti", 2, ">&-"),
        ("fti", 2, "2>&-"),
        ("fti", 2, "<&- >&- 2>&-"),
    ],
)
def test_closed_streams_change_no_exit_code(command: str, code: int, closed: str) -> None:
    process = ended(f"{command} {closed}")
    assert process.returncode == code
    assert "Traceback" not in process.stderr
    if "2>" not in closed:
        assert process.stderr.count("\n") == (command == "fti")


def test_closed_streams_and_json() -> None:
    process = ended("bench --json >&- 2>&-")
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


@pytest.mark.parametrize("command", ["bench", "--help"])
def test_a_full_disk_under_stdout_is_said_in_one_line(command: str) -> None:
    process = ended(f"{command} > /dev/full")
    assert process.returncode == 1
    assert process.stderr == "doxa: No space left on device\n"


def test_a_full_disk_under_stderr_costs_no_result() -> None:
    assert ended("bench 2> /dev/full").returncode == 0
    assert ended("fti 2> /dev/full").returncode == 2
