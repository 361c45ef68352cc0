"""Workers that are processes of this machine."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doxa import kernels
from doxa.errors import BadInput
from doxa.search.engines.attention import beat_interval
from doxa.search.engines.channel import LeaderChannel, decode, encode
from doxa.search.engines.contract import CopySearch, Exchange
from doxa.search.engines.follower import follow
from doxa.search.engines.heartbeat import FAREWELL
from doxa.search.engines.worker_pool import Message, PoolSettings, Worker

# What a process does not do to itself: whoever killed it, or a system that is short of memory, may spare the next.
FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")

MOST, MOST_PER_PROCESSOR = 64, 16  # workers of a pool


@dataclass(frozen=True)
class Pool(PoolSettings):
    """So many processes, each with so many threads, that evaluate what comes next.

    One that dies, or gives no sign of life for `silence` seconds, is replaced by a fresh copy of the search; what it
    was at is given to another, or with lost="drop" left out, the mean being that of what arrived. With a `deadline` so
    is one that takes longer than that many seconds for a part of a generation. Results are the same for any number of
    workers with the same number of threads each: a generation is divided into so many `parts`, whoever takes them.
    Objectives must be importable by other processes. Needs Linux or macOS.
    """

    def start_workers(self, copy: CopySearch) -> AbstractContextManager[Exchange]:
        if sys.platform == "win32":
            raise BadInput(
                "engines.pool needs Linux or macOS, since it ends and watches its workers by signals and sockets; this "
                "is Windows. Use engines.in_process, or Windows' own Linux (WSL)"
            )
        most = max(MOST, MOST_PER_PROCESSOR * (os.cpu_count() or 1))
        if self.workers > most:  # each is a Python with torch: memory would be gone before they have begun
            raise BadInput(
                f"engines.pool({self.workers}) is more than the {most} processes that a machine of {os.cpu_count()} "
                "processors could feed; ask for about as many as there are, or use engines.ray on several machines"
            )
        return self.open_pool(ProcessBackend(self.threads, beat_interval(self.silence, self.deadline)), copy)


@dataclass
class ProcessConnection:
    """A process, the way to it, and the time of a processor that it was last seen to have used."""

    process: Any
    channel: LeaderChannel
    cpu_seconds: float | None = None


class ProcessBackend:
    """Workers reached by sockets."""

    explains_deaths = True
    start_seconds = 60.0  # in which a process may import what it needs before it first beats
    start_advice = (
        'a script that starts workers needs `if __name__ == "__main__":` around its calls, and its objectives must be '
        "importable"
    )

    def __init__(self, threads: int, beat: float = 1.0) -> None:
        self.threads, self.beat, self.context = threads, beat, multiprocessing.get_context("spawn")
        self.selector = selectors.DefaultSelector()
        self.processes: list[Any] = []
        self.is_ending = False

    def start_worker(self, copy: bytes) -> Worker:
        if self.is_ending:  # a thread searches that nobody waits for
            raise SystemExit
        if not self.processes:
            atexit.register(self._kill_all)  # multiprocessing, which is asked later, would wait for them
        kernels.library()  # here first: processes find what the one that starts them has compiled
        leader_end, worker_end = socket.socketpair()
        by_main_thread = threading.current_thread() is threading.main_thread()
        terms = (worker_end, self.threads, self.beat, os.getpid() if by_main_thread else None)
        process = self.context.Process(target=follow, args=terms, daemon=True)
        process.start()
        self.processes = [*(other for other in self.processes if other.is_alive()), process]
        worker_end.close()
        return self._connect(process, leader_end, copy)

    def _connect(self, process: Any, leader_end: socket.socket, copy: bytes) -> Worker:
        channel = LeaderChannel(leader_end)
        worker = Worker(ProcessConnection(process, channel))
        self.selector.register(leader_end, selectors.EVENT_READ, worker)
        self.selector.register(process.sentinel, selectors.EVENT_READ, worker)
        # A copy with much data is not sent at once: while one process starts to read it, others can start.
        self._post(worker, copy)
        return worker

    def send(self, workers: Sequence[Worker], message: Message) -> None:
        content = encode(message)  # once: what goes to many may be large
        for worker in workers:
            self._post(worker, content)

    def unsent(self, worker: Worker) -> int:
        return int(worker.connection.channel.unsent)

    def _post(self, worker: Worker, content: bytes) -> None:
        worker.connection.channel.post(content)
        self._watch_for_room(worker)

    def _watch_for_room(self, worker: Worker) -> None:
        channel = worker.connection.channel
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.outgoing else 0)
        if self.selector.get_key(channel.socket).events != events:
            self.selector.modify(channel.socket, events, worker)

    def receive(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Message | None]]:
        ready: dict[int, tuple[Worker, bool]] = {}
        for key, events in self.selector.select(timeout):
            worker: Worker = key.data
            if events & selectors.EVENT_WRITE:
                worker.connection.channel.flush()
                self._watch_for_room(worker)
            has_ended = key.fd == worker.connection.process.sentinel
            if events & selectors.EVENT_READ:
                ready[id(worker)] = worker, has_ended or ready.get(id(worker), (worker, False))[1]
        return [said for worker, has_ended in ready.values() for said in self._collect(worker, has_ended)]

    def _collect(self, worker: Worker, has_ended: bool) -> list[tuple[Worker, Message | None]]:
        contents, is_open = worker.connection.channel.collect()
        messages: list[Message | None] = [decode(content) for content in contents]
        if has_ended or not is_open:
            self._hang_up(worker)
            worker.connection.process.join(timeout=5)
            messages.append(None)
        return [(worker, message) for message in messages]

    def _hang_up(self, worker: Worker) -> None:
        if worker.connection.channel.socket.fileno() < 0:  # it is done already
            return
        self.selector.unregister(worker.connection.channel.socket)
        self.selector.unregister(worker.connection.process.sentinel)
        worker.connection.channel.close()

    def shows_life(self, worker: Worker) -> bool:
        """Whether a process that says nothing uses a processor: a call that holds Python's lock lets no thread beat."""
        before, now = worker.connection.cpu_seconds, _cpu_seconds(worker.connection.process.pid)
        worker.connection.cpu_seconds = now
        return before is not None and now is not None and now > before

    def exit_reason(self, worker: Worker) -> str | None:
        exit_code = worker.connection.process.exitcode
        if exit_code is None or exit_code >= 0:
            return f"exit code {exit_code}"
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = f"signal {-exit_code}"
        return None if name in FROM_OUTSIDE else f"killed by {name}"

    def dismiss(self, worker: Worker) -> None:
        self._hang_up(worker)
        worker.connection.process.kill()  # which one that is stopped cannot withstand
        worker.connection.process.join(timeout=5)

    def _kill_all(self) -> None:
        """End all that are left where this process ends while a thread of it still searches."""
        self.is_ending = True
        for process in self.processes:
            process.kill()

    def stop_workers(self, workers: Sequence[Worker]) -> None:
        atexit.unregister(self._kill_all)
        for worker in workers:
            if not worker.ready:  # it has nothing to end
                worker.connection.process.kill()
            self._hang_up(worker)
        end = time.monotonic() + FAREWELL
        for worker in workers:
            worker.connection.process.join(timeout=max(0.0, end - time.monotonic()))
            if worker.connection.process.is_alive():
                worker.connection.process.kill()
                worker.connection.process.join(timeout=5)
        self.selector.close()


def _cpu_seconds(pid: int) -> float | None:
    """Seconds of a processor that a process has used, where the system tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
