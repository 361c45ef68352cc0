"""Ctrl-C as a request."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_here = threading.local()


@contextmanager
def gentle_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a request to stop between two steps; the second one stops at once.

    Within another's, it is the same request: what has several runs to do ends all of them.
    """
    outer = getattr(_here, "stop", None)
    if outer is not None:
        yield outer
        return
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, ask)
    _here.stop = stop
    try:
        yield stop
    finally:
        _here.stop = None
        signal.signal(signal.SIGINT, before)
