"""Workers that are processes of this machine."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from doxa.search.engines.contract import Copy, Exchange
from doxa.search.engines.crew import Terms, Words, Worker
from doxa.search.engines.follower import follow


@dataclass(frozen=True)
class Pool(Terms):
    """So many processes, each with so many threads, that evaluate what comes next.

    One that is lost is replaced by a fresh copy of the search; what it was at is given to another, or with
    lost="drop" left out, the mean being that of what arrived. Results are the same for any number of workers with the
    same number of threads each: a generation is divided into so many `parts`, whoever takes them. Objectives must be
    importable by other processes.
    """

    def working(self, copy: Copy) -> AbstractContextManager[Exchange]:
        return self.at_work(Processes(self.threads), copy)


@dataclass(frozen=True)
class Line:
    """A process, the pipe to it, and the thread that sends it its copy."""

    process: Any
    pipe: Connection
    sending: threading.Thread

    def close(self) -> None:
        self.sending.join()  # which nobody who is gone keeps waiting
        self.pipe.close()


class Processes:
    """Workers reached by pipes."""

    def __init__(self, threads: int) -> None:
        self.threads, self.context = threads, multiprocessing.get_context("spawn")

    def hire(self, copy: bytes) -> Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=follow, args=(theirs, self.threads), daemon=True)
        process.start()
        theirs.close()
        # A copy with much data does not fit into the pipe: while one process starts to read it, others can start.
        sending = threading.Thread(target=_send, args=(ours, copy), daemon=True)
        sending.start()
        return Worker(Line(process, ours, sending))

    def tell(self, worker: Worker, words: Words) -> None:
        worker.line.sending.join()  # words come after the copy
        with suppress(BrokenPipeError, OSError):
            worker.line.pipe.send(words)

    def hear(self, workers: Sequence[Worker]) -> list[tuple[Worker, Words | None]]:
        by_pipe = {w.line.pipe: w for w in workers}
        by_end = {w.line.process.sentinel: w for w in workers}
        speaking = {id(w): w for w in ((by_pipe | by_end)[ready] for ready in wait([*by_pipe, *by_end]))}
        return [(w, self._heard(w)) for w in speaking.values()]

    def _heard(self, worker: Worker) -> Words | None:
        try:
            found: Words = worker.line.pipe.recv()
        except (EOFError, OSError):
            worker.line.close()
            worker.line.process.join(timeout=5)
            return None
        return found

    def ended_by_itself(self, worker: Worker) -> str | None:
        code = worker.line.process.exitcode
        if code is not None and code < 0:
            return None
        return (
            f'exit code {code}; a script that starts workers needs `if __name__ == "__main__":` around its calls, and '
            "its objectives must be importable"
        )

    def dismiss(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            if worker.line.sending.is_alive():  # it has not begun
                worker.line.process.kill()
            worker.line.close()
        for worker in workers:
            worker.line.process.join(timeout=2)
            if worker.line.process.is_alive():
                worker.line.process.kill()
                worker.line.process.join()


def _send(pipe: Connection, copy: bytes) -> None:
    with suppress(BrokenPipeError, OSError):  # who is dead is found so where its pipe is listened to
        pipe.send_bytes(copy)
