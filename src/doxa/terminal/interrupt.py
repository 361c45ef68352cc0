"""Ctrl-C as a request."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_thread_state = threading.local()


@contextmanager
def gentle_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a request to stop between two steps; the second one stops at once.

    Within another's, it is the same request: what has several runs to do ends all of them.
    """
    outer = getattr(_thread_state, "stop", None)
    if outer is not None:
        yield outer
        return
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def on_sigint(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    previous_handler = signal.signal(signal.SIGINT, on_sigint)
    _thread_state.stop = stop
    try:
        yield stop
    finally:
        _thread_state.stop = None
        signal.signal(signal.SIGINT, previous_handler)
