"""Work that is wrong in a known way, for the campaign to find."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import threading
import time
import warnings
from contextlib import nullcontext
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

from doxa.engine.checkpoint import Checkpointer
from doxa.engine.run import Run
from doxa.errors import BrokenFile
from doxa_bench.faults import work
from doxa_bench.faults.kinds.damage import try_damages


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


def learn(folder: str, flaw: str = "") -> str:
    """Learn as a case does; with a flaw, what was saved is not gone on with, or not kept."""
    plant(flaw)
    return work.learn(folder, "point")


def damage(flaw: str, **arguments: Any) -> dict[str, Any]:
    """A block of damages, of which what is to notice them has a flaw."""
    plant(flaw)
    return try_damages(**arguments)


def plant(flaw: str) -> None:
    """Break Doxa for the rest of this process."""
    if flaw == "begins anew":
        Checkpointer._unpack = lambda self, work, path: None
    elif flaw == "does not look":
        Checkpointer.reopen = lambda self, work, resume: None
    elif flaw == "keeps one":
        sealed = sys.modules["doxa.engine.checkpoint"].sealed
        write = sealed.write
        sealed.write = lambda path, kind, header, tensors, keep_as=None: write(path, kind, header, tensors)
    elif flaw == "says nothing":
        warnings.simplefilter("ignore")
        warnings.warn = lambda *words, **options: None
    elif flaw == "dies of signals":
        stop_and_go = sys.modules["doxa.training.train"]
        stop_and_go.gentle_interrupt = partial(nullcontext, threading.Event())
    elif flaw == "stops unsaved":
        Checkpointer.save_interrupted = lambda self, work: "; not saved"
    elif flaw == "refuses":
        Checkpointer.reopen = partialmethod(refuse_damaged, Checkpointer.reopen)
    elif flaw == "checks nothing":
        sys.modules["doxa.runs.check"]._check_checkpoints = lambda folder, manifest: []


def refuse_damaged(checkpointer: Checkpointer, reopen: Any, work: Any, resume: bool) -> None:
    """Pass no damaged checkpoint over."""
    path = checkpointer.folder / "checkpoint.doxa"
    if path.exists():
        checkpointer._unpack(work, path)
    reopen(checkpointer, work, resume)


def interrupt_itself(folder: str, number: int, flaw: str = "") -> str:
    """The same, with a signal in the midst of the eleventh step: the ninth is saved, and the twelfth."""
    advance = Run.advance

    def struck(self: Run) -> str:
        if self.done == 10:
            os.kill(os.getpid(), number)
        return advance(self)

    Run.advance = struck
    return learn(folder, flaw)


def run_something(how: str) -> None:
    if how == "process":
        os.system("true")
    elif how == "code":
        name = "_".join(["doxa", "canary"])  # nowhere in this file, which is compiled when it is imported
        eval(f"{name}.append(1)", {name: []})
    elif how == "import":
        importlib.import_module("_".join(["doxa", "canary"]) + ".within")
    elif how == "library":
        ctypes.CDLL(None)
    elif how == "fork":
        if os.fork() == 0:
            os._exit(0)
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
