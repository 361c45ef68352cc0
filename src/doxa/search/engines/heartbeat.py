"""What a worker's process does beside its work: say that it is there, and end when nobody listens any more."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from doxa.search.engines.channel import WorkerChannel

FAREWELL = 2.0  # seconds in which a worker may end by itself after the search has hung up
PR_SET_PDEATHSIG = 1


def start_heartbeat(channel: WorkerChannel, beat: Callable[[], Any], every: float) -> None:
    """Send a beat every so many seconds from a thread of its own, whatever the objective does meanwhile."""
    threading.Thread(target=_keep_beating, args=(channel, beat, every), daemon=True).start()


def _keep_beating(channel: WorkerChannel, beat: Callable[[], Any], every: float) -> None:
    leader = multiprocessing.parent_process()
    assert leader is not None
    try:
        while not wait([leader.sentinel], timeout=every):
            channel.send(beat())
    except OSError:
        time.sleep(FAREWELL)
    os._exit(0)


def die_with_leader(leader: int) -> None:
    """On Linux, have the kernel end this process with the one that started it, even while it is stopped.

    The kernel goes by the thread that started it, so this is for workers that were started by a main thread.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != leader:  # it died before the kernel knew
        os._exit(0)
