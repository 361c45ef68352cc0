"""Processes that leave Ctrl-C to the one that started them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, resource_tracker


@contextmanager
def worker_pool(cores: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that leave Ctrl-C to this one; whatever ends the work here ends theirs at once."""
    earlier_children = {*active_children()}
    pool = ProcessPoolExecutor(cores, get_context("spawn"), _ignore_interrupts)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in {*active_children()} - earlier_children:
            child.terminate()
        raise
    pool.shutdown()


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Signals to end wait: a process that is half started would lose what it reads from this one.

    Processes started here never hear Ctrl-C, not even while they import what they need to be deaf.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals: list[int] = []
    can_mask = hasattr(signal, "pthread_sigmask")  # a mask is inherited, a handler is not
    if can_mask:
        resource_tracker.ensure_running()  # started beside the first process, it would take the mask away
    handlers = {
        number: signal.signal(number, lambda number, frame: signals.append(number))
        for number in (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_mask else set()
    try:
        yield
    finally:
        if can_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if signals:
        signal.raise_signal(signals[0])
