"""Work that is wrong in a known way, for the campaign to find."""

from __future__ import annotations

import os
import time
from pathlib import Path

from doxa.errors import BrokenFile


def count(folder: str, flaw: str = "") -> int:
    """Count to three, a file a step, going on where it was; with a flaw, not quite."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    started = any(path.glob("step-*"))
    if flaw == "refuses" and started:
        raise BrokenFile("there is something already")
    if flaw == "remnant":
        (path / ".doxa-0123456789abcdef").touch()
    for k in range(3):
        done = path / f"step-{k}"
        if not done.exists():
            temporary = path / f".doxa-{k:016x}"
            temporary.write_text(str(k + (flaw == "another file" and started)))
            os.replace(temporary, done)
    for left in path.glob(".doxa-*"):
        if flaw != "remnant":
            left.unlink()
    return 7 + (flaw == "another end" and started)


def save_badly(folder: str) -> None:
    """A checkpoint that is removed before the next is in its place."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for k in range(3):
        temporary, checkpoint = path / f".doxa-{k:016x}", path / "checkpoint.doxa"
        temporary.write_text(str(k))
        checkpoint.unlink(missing_ok=True)
        os.replace(temporary, checkpoint)


def run_something(how: str) -> None:
    if how == "process":
        os.system("true")
    elif how == "code":
        name = "_".join(["doxa", "canary"])  # nowhere in this file, which is compiled when it is imported
        eval(f"{name}.append(1)", {name: []})
    elif how == "pickle":
        import pickle

        pickle.loads(b"cposix\ngetpid\n.")


def fall_over() -> None:
    raise KeyError("nobody wrote a sentence")


def print_traceback() -> None:
    os.write(2, b"Traceback (most recent call last):\n  somewhere\n")


def exit_as_a_fault() -> dict[str, int]:
    return {"exit": 70}


def sleep_long() -> None:
    time.sleep(60)


def take_memory(megabytes: int) -> int:
    return len(bytearray(megabytes << 20))
