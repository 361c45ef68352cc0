"""Workers that are processes of this machine."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from doxa.search.engines.contract import CopySearch, Exchange
from doxa.search.engines.follower import follow
from doxa.search.engines.worker_pool import Message, PoolSettings, Worker


@dataclass(frozen=True)
class Pool(PoolSettings):
    """So many processes, each with so many threads, that evaluate what comes next.

    One that is lost is replaced by a fresh copy of the search; what it was at is given to another, or with
    lost="drop" left out, the mean being that of what arrived. Results are the same for any number of workers with the
    same number of threads each: a generation is divided into so many `parts`, whoever takes them. Objectives must be
    importable by other processes.
    """

    def start_workers(self, copy: CopySearch) -> AbstractContextManager[Exchange]:
        return self.open_pool(ProcessBackend(self.threads), copy)


@dataclass(frozen=True)
class ProcessConnection:
    """A process, the pipe to it, and the thread that sends it its copy."""

    process: Any
    pipe: Connection
    sender: threading.Thread

    def close(self) -> None:
        self.sender.join()  # which nobody who is gone keeps waiting
        self.pipe.close()


class ProcessBackend:
    """Workers reached by pipes."""

    def __init__(self, threads: int) -> None:
        self.threads, self.context = threads, multiprocessing.get_context("spawn")

    def start_worker(self, copy: bytes) -> Worker:
        leader_end, worker_end = self.context.Pipe()
        process = self.context.Process(target=follow, args=(worker_end, self.threads), daemon=True)
        process.start()
        worker_end.close()
        # A copy with much data does not fit into the pipe: while one process starts to read it, others can start.
        sender = threading.Thread(target=_send, args=(leader_end, copy), daemon=True)
        sender.start()
        return Worker(ProcessConnection(process, leader_end, sender))

    def send(self, worker: Worker, message: Message) -> None:
        worker.connection.sender.join()  # messages come after the copy
        with suppress(BrokenPipeError, OSError):
            worker.connection.pipe.send(message)

    def receive(self, workers: Sequence[Worker]) -> list[tuple[Worker, Message | None]]:
        by_pipe = {w.connection.pipe: w for w in workers}
        by_sentinel = {w.connection.process.sentinel: w for w in workers}
        ready_workers = {id(w): w for w in ((by_pipe | by_sentinel)[ready] for ready in wait([*by_pipe, *by_sentinel]))}
        return [(w, self._receive_from(w)) for w in ready_workers.values()]

    def _receive_from(self, worker: Worker) -> Message | None:
        try:
            message: Message = worker.connection.pipe.recv()
        except (EOFError, OSError):
            worker.connection.close()
            worker.connection.process.join(timeout=5)
            return None
        return message

    def exit_reason(self, worker: Worker) -> str | None:
        exit_code = worker.connection.process.exitcode
        if exit_code is not None and exit_code < 0:
            return None
        return (
            f'exit code {exit_code}; a script that starts workers needs `if __name__ == "__main__":` around its calls, '
            "and its objectives must be importable"
        )

    def stop_workers(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            if worker.connection.sender.is_alive():  # it has not begun
                worker.connection.process.kill()
            worker.connection.close()
        for worker in workers:
            worker.connection.process.join(timeout=2)
            if worker.connection.process.is_alive():
                worker.connection.process.kill()
                worker.connection.process.join()


def _send(pipe: Connection, copy: bytes) -> None:
    with suppress(BrokenPipeError, OSError):  # who is dead is found so where its pipe is listened to
        pipe.send_bytes(copy)
