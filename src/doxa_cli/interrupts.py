"""Ctrl-C while modules are being imported."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

RETRY_SECONDS = 0.005  # seconds


@contextmanager
def delay_interrupts_during_imports() -> Iterator[None]:
    """An interruption during an import waits until it is over, and no longer than to the end of this context.

    A library that is being imported may take the KeyboardInterrupt for a missing part of itself and go on without it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.getsignal(signal.SIGINT)
    if previous_handler is not signal.default_int_handler:  # somebody else decides about it
        yield
        return
    pending_timers: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        pending_timers.clear()
        if not _importing(frame):
            raise KeyboardInterrupt
        # To the process, since a thread that was begun under a mask would keep it to itself.
        pending_timers.append(threading.Timer(RETRY_SECONDS, os.kill, (os.getpid(), number)))
        pending_timers[0].start()

    signal.signal(signal.SIGINT, interrupt)
    try:
        try:
            yield
        finally:
            for timer in pending_timers:
                timer.cancel()
                timer.join()
        if pending_timers:
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
