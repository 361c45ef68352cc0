"""Processes that leave Ctrl-C to the one that started them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, resource_tracker


@contextmanager
def workers(cores: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that leave Ctrl-C to this one; whatever ends the work here ends theirs at once."""
    others = {*active_children()}
    pool = ProcessPoolExecutor(cores, get_context("spawn"), _deaf)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in {*active_children()} - others:
            child.terminate()
        raise
    pool.shutdown()


def _deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def held_back() -> Iterator[None]:
    """Ctrl-C waits; processes started here never hear it, not even while they import what they need to be deaf."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    masked = hasattr(signal, "pthread_sigmask")  # a mask is inherited, a handler is not
    if masked:
        resource_tracker.ensure_running()  # started beside the first process, it would take the mask away
    handler = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masked else set()
    try:
        yield
    finally:
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if heard:
        signal.raise_signal(signal.SIGINT)
