"""What it takes a process to lead so many others through a generation: its own time, and bytes on the way."""

from __future__ import annotations

import os
import pickle
import queue
import socket
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait

import numpy as np
from torch import Tensor

from doxa.search.engines.channel import LENGTH, WorkerChannel
from doxa.search.engines.follower import ANSWER, ANSWERS, EVALUATE, READY
from doxa.search.engines.pool import ProcessBackend
from doxa.search.engines.worker_pool import PoolSettings, Worker, WorkerPool

HEAD = LENGTH.size  # bytes before a message in a socket


@dataclass(frozen=True)
class EndlessProcess:
    """Where a process would be that never ends: something to wait for."""

    sentinel: int


class SimulatedProcesses(ProcessBackend):
    """Sockets to workers that are one thread of this process, which answers for all of them at once.

    The leader does with them what it does with thousands of processes, which no one machine has.
    """

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.fresh: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()
        self.quiet, self.open = os.pipe()  # nothing is ever written there
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._answer, daemon=True)
        self.thread.start()

    def start_worker(self, copy: bytes) -> Worker:
        ours, theirs = socket.socketpair()
        self.fresh.put(theirs)
        return self._connect(EndlessProcess(os.dup(self.quiet)), ours, copy)

    def stop_workers(self, workers: Sequence[Worker]) -> None:
        self.ended.set()
        self.thread.join()
        for worker in workers:
            self._hang_up(worker)
            os.close(worker.connection.process.sentinel)
        self.selector.close()
        os.close(self.quiet)
        os.close(self.open)

    def _answer(self) -> None:
        value, channels = np.zeros((2, 2), np.float32), dict[socket.socket, WorkerChannel]()
        while not self.ended.is_set():
            while not self.fresh.empty():
                connection = self.fresh.get()
                channels[connection] = WorkerChannel(connection)
                channels[connection].recv_bytes()  # its copy
                channels[connection].send((READY, -1, -1, None))
            for ready in wait(list(channels), timeout=0.01):
                assert isinstance(ready, socket.socket)
                kind, generation, what = channels[ready].recv()
                if kind == EVALUATE:
                    channels[ready].send((ANSWER, generation, what, value))
        for connection in channels:
            connection.close()


def leader_seconds(workers: int, parts: int, generations: int) -> float:
    """Seconds of CPU a generation of the thread that leads; the first ones, in which workers begin, do not count."""
    pool = WorkerPool(SimulatedProcesses(), PoolSettings(workers), lambda: b"")
    blocks = [slice(2 * k, 2 * k + 2) for k in range(parts)]
    seconds = []
    try:
        for generation in range(generations):
            start = time.thread_time()
            pool.exchange(generation, _never_evaluate, blocks)
            seconds.append(time.thread_time() - start)
    finally:
        pool.stop()
    return statistics.median(seconds[len(seconds) // 2 :])


def _never_evaluate(units: slice) -> Tensor:
    raise AssertionError("who leads does not evaluate")


def message_bytes() -> dict[str, float]:
    """What travels, as pipes carry it: for a block to be evaluated, its answer, a value in it, and all answers."""

    def size(message: object) -> int:
        return HEAD + len(pickle.dumps(message))

    def answer(values: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return np.zeros((values, 2), np.float32)

    answer_of_one, answer_of_many = size((ANSWER, 1000, 100, answer(1))), size((ANSWER, 1000, 100, answer(1001)))
    value_bytes = (answer_of_many - answer_of_one) / 1000
    broadcast_of_few, broadcast_of_many = (
        size((ANSWERS, 1000, [answer(2) for _ in range(parts)])) for parts in (16, 1016)
    )
    return {
        "request": size((EVALUATE, 1000, 100)),
        "answer": answer_of_one - value_bytes,
        "value": value_bytes,
        "told_block": (broadcast_of_many - broadcast_of_few) / 1000 - 2 * value_bytes,
    }
