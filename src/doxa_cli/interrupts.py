"""Ctrl-C while modules are being imported."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 0.005  # seconds


@contextmanager
def after_imports() -> Iterator[None]:
    """An interruption during an import waits until it is over, and no longer than to the end of this context.

    A library that is being imported may take the KeyboardInterrupt for a missing part of itself and go on without it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # somebody else decides about it
        yield
        return
    waiting: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        waiting.clear()
        if not _importing(frame):
            raise KeyboardInterrupt
        # To the process, since a thread that was begun under a mask would keep it to itself.
        waiting.append(threading.Timer(AGAIN, os.kill, (os.getpid(), number)))
        waiting[0].start()

    signal.signal(signal.SIGINT, interrupt)
    try:
        try:
            yield
        finally:
            for timer in waiting:
                timer.cancel()
                timer.join()
        if waiting:
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
