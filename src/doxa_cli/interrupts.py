"""Ctrl-C while modules are being imported."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 0.005  # seconds


@contextmanager
def after_imports() -> Iterator[None]:
    """An interruption during an import waits until it is over.

    A library that is being imported may take the KeyboardInterrupt for a missing part of itself and go on without it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # somebody else decides about it
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            threading.Timer(AGAIN, signal.raise_signal, (number,)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt
