"""Workers that are processes of this machine."""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, whole
from doxa.search.engines.contract import Copy, Evaluate, EvaluationFailed, Exchange
from doxa.search.engines.follower import ANSWER, ANSWERS, EVALUATE, READY, follow

REISSUE, DROP = "reissue", "drop"
MOST = 10  # deaths of each worker without an answer of any, after which it is no accident


@dataclass(frozen=True)
class Pool:
    """So many processes, each with so many threads, that evaluate what comes next.

    One that is lost is replaced by a fresh copy of the search; what it was at is given to another, or with
    lost="drop" left out, the mean being that of what arrived. Results are the same for any number of workers with the
    same number of threads each: a generation is divided into so many `parts`, whoever takes them. Objectives must be
    importable by other processes.
    """

    workers: int = field(default=2, compare=False)
    threads: int = 1
    lost: str = field(default=REISSUE, compare=False)
    parts: int = 16

    def __post_init__(self) -> None:
        whole("workers", self.workers)
        whole("threads", self.threads)
        whole("parts", self.parts)
        if self.lost not in (REISSUE, DROP):
            raise BadInput(f'lost must be "{REISSUE}" or "{DROP}"; got {self.lost!r}')

    @contextmanager
    def working(self, copy: Copy) -> Iterator[Exchange]:
        crew = Crew(self, copy)
        try:
            yield crew.exchange
        finally:
            crew.stop()


@dataclass
class Worker:
    """One process, and the line to it."""

    process: Any
    line: Connection
    ready: bool = False
    at: int | None = None  # the block that it evaluates
    begun: float = field(default_factory=time.perf_counter)


class Crew:
    """Workers at work for one search."""

    def __init__(self, settings: Pool, copy: Copy) -> None:
        self.settings, self.copy = settings, copy
        self.context = multiprocessing.get_context("spawn")
        self.workers: list[Worker] = []
        self.recovered: list[float] = []  # seconds from a loss to a worker in its place
        self.lost_at: deque[float] = deque()
        self.deaths = 0  # since the last answer

    def _hire(self) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=follow, args=(theirs, self.settings.threads), daemon=True)
        process.start()
        theirs.close()
        worker = Worker(process, ours)
        self.workers.append(worker)
        with suppress(BrokenPipeError, OSError):  # then it is found dead below
            ours.send_bytes(self.copy())

    def exchange(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        """Give blocks to whoever is free until each has been evaluated, or dropped; then tell everyone."""
        while len(self.workers) < self.settings.workers:
            self._hire()
        todo = deque(range(len(blocks)))
        found: dict[int, Any] = {}
        while len(found) < len(blocks):
            for worker in self.workers:
                if worker.ready and worker.at is None and todo:
                    worker.at = todo.popleft()
                    self._tell(worker, (EVALUATE, generation, worker.at))
            lines: dict[Any, Worker] = {w.line: w for w in self.workers}
            ends: dict[Any, Worker] = {w.process.sentinel: w for w in self.workers}
            for ready in wait([*lines, *ends]):
                worker = lines.get(ready) or ends[ready]
                if worker not in self.workers:
                    continue
                self._hear(worker, generation, found, todo)
        answers = [found[k] for k in range(len(blocks))]
        for worker in self.workers:
            self._tell(worker, (ANSWERS, generation, answers))
        return [None if part is None else torch.from_numpy(part) for part in answers]

    def _tell(self, worker: Worker, words: tuple[Any, ...]) -> None:
        with suppress(BrokenPipeError, OSError):  # it is found dead where its line is listened to
            worker.line.send(words)

    def _hear(self, worker: Worker, generation: int, found: dict[int, Any], todo: deque[int]) -> None:
        try:
            kind, number, block, given = worker.line.recv()
        except (EOFError, OSError):
            self._lose(worker, found, todo)
            return
        if kind == READY:
            worker.ready = True
            if self.lost_at:
                self.recovered.append(time.perf_counter() - self.lost_at.popleft())
            return
        worker.at = None
        if kind == ANSWER:
            self.deaths = 0
            if number == generation:
                found[block] = given
            return
        raise EvaluationFailed(
            f"the objective raised an error in generation {generation}, block {block} of the population: {given}. "
            "Nothing was changed by this generation"
        )

    def _lose(self, worker: Worker, found: dict[int, Any], todo: deque[int]) -> None:
        """Replace a worker that has died; what it was at goes to another, or nowhere."""
        self.workers.remove(worker)
        worker.line.close()
        worker.process.join(timeout=5)
        code = worker.process.exitcode
        if not worker.ready and (code is None or code >= 0):  # it was not killed: the next one would end the same way
            raise EvaluationFailed(
                f"a worker ended with exit code {code} before it could open its copy of the search: a script that "
                'starts workers needs `if __name__ == "__main__":` around its calls, and its objectives must be '
                "importable"
            )
        self.deaths += 1
        if self.deaths > MOST * self.settings.workers:
            raise EvaluationFailed(
                f"{self.deaths} workers have died one after the other without a single answer, the last with exit code "
                f"{code}: is there memory for {self.settings.workers} of them?"
            )
        self.lost_at.append(time.perf_counter())
        if worker.at is not None:
            if self.settings.lost == DROP:
                found[worker.at] = None
            else:
                todo.appendleft(worker.at)
        self._hire()

    def stop(self) -> None:
        for worker in self.workers:
            worker.line.close()
        for worker in self.workers:
            worker.process.join(timeout=2)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self.workers.clear()
