"""Ctrl-C, SIGTERM and SIGHUP as requests."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_thread_state = threading.local()


class StopRequest(threading.Event):
    """Set when somebody asks to stop, with the number of the signal that it came by."""

    signal: int = signal.SIGINT


@contextmanager
def gentle_interrupt() -> Iterator[StopRequest]:
    """Turn the first signal to end into a request to stop between two steps; the second one ends at once.

    Within another's, it is the same request: what has several runs to do ends all of them. SIGTERM and SIGHUP are left
    to whoever decides about them already, as `nohup` does.
    """
    outer = getattr(_thread_state, "stop", None)
    if outer is not None:
        yield outer
        return
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def on_signal(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        stop.signal = number
        stop.set()

    previous_handlers = {number: signal.signal(number, on_signal) for number in _signals()}
    _thread_state.stop = stop
    try:
        yield stop
    finally:
        _thread_state.stop = None
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _signals() -> list[int]:
    """The signals that are requests here."""
    # Torchrun's agent ends the ranks by SIGTERM when it has lost one: those that wait for it could not stop gently.
    others = () if "TORCHELASTIC_RUN_ID" in os.environ else (signal.SIGTERM,)
    others = (*others, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
    return [signal.SIGINT, *(number for number in others if _ends_the_process(signal.getsignal(number)))]


def _ends_the_process(handler: Any) -> bool:
    """Whether a signal would end it: by default, or as the command line says the same in words."""
    return handler is signal.SIG_DFL or getattr(handler, "replaces_default", False)
