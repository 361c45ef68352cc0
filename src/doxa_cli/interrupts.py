"""Signals to end a command, also while modules are being imported."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

RETRY_SECONDS = 0.005  # seconds


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, SIGTERM and SIGHUP the SystemExit of their exit code, wherever a command is.

    During an import they wait until it is over, and no longer than to the end of this context: a library that is being
    imported may take the error for a missing part of itself and go on without it. What learns turns them into requests
    to stop for as long as it does (`doxa.terminal.interrupt`).
    """
    previous_handlers = _replaceable_handlers() if threading.current_thread() is threading.main_thread() else {}
    pending: list[tuple[int, threading.Timer]] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        pending.clear()
        if not _importing(frame):
            _end(number)
        # To the process, since a thread that was begun under a mask would keep it to itself.
        pending.append((number, threading.Timer(RETRY_SECONDS, os.kill, (os.getpid(), number))))
        pending[0][1].start()

    on_signal.replaces_default = True  # type: ignore[attr-defined]
    for number in previous_handlers:
        signal.signal(number, on_signal)
    try:
        try:
            yield
        finally:
            for _, timer in pending:
                timer.cancel()
                timer.join()
        if pending:
            _end(pending[0][0])
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _replaceable_handlers() -> dict[int, Any]:
    """The signals that nobody else decides about, as `nohup`, or torchrun's agent, which ends its ranks by SIGTERM."""
    others = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if "TORCHELASTIC_RUN_ID" in os.environ:
        others.remove(signal.SIGTERM)
    defaults = {signal.SIGINT: signal.default_int_handler, **dict.fromkeys(others, signal.SIG_DFL)}
    return {number: handler for number, handler in defaults.items() if signal.getsignal(number) is handler}


def _end(number: int) -> None:
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
