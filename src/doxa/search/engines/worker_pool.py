"""Workers at work for one search, wherever they are: who is given what, and what becomes of those that are lost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.errors import BadInput, require_whole
from doxa.search.engines.contract import CopySearch, Evaluate, EvaluationFailed, Exchange, OutOfStep, failure
from doxa.search.engines.follower import ANSWERS, EVALUATE, OUT_OF_STEP, RAISED, READY

REISSUE, DROP = "reissue", "drop"
MAX_DEATHS_PER_WORKER = 10  # deaths of each worker without an answer of any, after which it is no accident

Message = tuple[Any, ...]


@dataclass(eq=False)
class Worker:
    """One of them: how to reach it, whether it has opened its copy, and the block that it evaluates."""

    connection: Any
    ready: bool = False
    block: int | None = None


class WorkerBackend(Protocol):
    """How workers are reached: processes by pipes, actors by calls."""

    def start_worker(self, copy: bytes) -> Worker:
        """Start one with its copy of the search."""
        ...

    def send(self, worker: Worker, message: Message) -> None:
        """Say something; one that is dead does not hear it."""
        ...

    def receive(self, workers: Sequence[Worker]) -> list[tuple[Worker, Message | None]]:
        """Wait until some have said something; None is what the dead say."""
        ...

    def exit_reason(self, worker: Worker) -> str | None:
        """Why a dead worker ended, in words, where nobody killed it."""
        ...

    def stop_workers(self, workers: Sequence[Worker]) -> None:
        """Let them go."""
        ...


@dataclass(frozen=True)
class PoolSettings:
    """What workers are hired on, wherever they are.

    So many of them, each with so many threads, and what becomes of the work of one that is lost: it is done again by
    another, or dropped. A generation is divided into so many `parts`, whoever takes them.
    """

    workers: int = field(default=2, compare=False)
    threads: int = 1
    lost: str = field(default=REISSUE, compare=False)
    parts: int = 16

    leads = True

    def __post_init__(self) -> None:
        for name in ("workers", "threads", "parts"):
            require_whole(name, getattr(self, name))
        if self.lost not in (REISSUE, DROP):
            raise BadInput(f'lost must be "{REISSUE}" or "{DROP}"; got {self.lost!r}')

    @contextmanager
    def open_pool(self, backend: WorkerBackend, copy: CopySearch) -> Iterator[Exchange]:
        """A pool of a backend on these settings, let go at the end."""
        pool = WorkerPool(backend, self.workers, self.lost, copy)
        try:
            yield pool.exchange
        finally:
            pool.stop()


class WorkerPool:
    """So many workers of a backend, each of which is given what comes next when it is free."""

    def __init__(self, backend: WorkerBackend, size: int, lost: str, copy: CopySearch) -> None:
        self.backend, self.size, self.lost, self.copy = backend, size, lost, copy
        self.workers: list[Worker] = []
        self.deaths = 0  # since the last answer
        self.loss_times: deque[float] = deque()  # when those were lost that nobody stands in for yet
        self.recovered: list[float] = []  # seconds from a loss to another that is ready

    def exchange(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        """Give blocks to whoever is free until each has been evaluated, or dropped; then tell everyone."""
        if not self.workers:
            copy = self.copy()
            self.workers.extend(self.backend.start_worker(copy) for _ in range(self.size))
        pending_blocks, values_by_block = deque(range(len(blocks))), dict[int, Any]()
        while len(values_by_block) < len(blocks):
            for worker in self.workers:
                if worker.ready and worker.block is None and pending_blocks:
                    worker.block = pending_blocks.popleft()
                    self.backend.send(worker, (EVALUATE, generation, worker.block))
            for worker, message in self.backend.receive(self.workers):
                if message is None:
                    self._replace_worker(worker, values_by_block, pending_blocks)
                else:
                    self._handle_message(worker, message, generation, values_by_block, pending_blocks)
        answers = [values_by_block[k] for k in range(len(blocks))]
        for worker in self.workers:
            self.backend.send(worker, (ANSWERS, generation, answers))
        return [None if part is None else torch.from_numpy(part.copy()) for part in answers]

    def _handle_message(
        self,
        worker: Worker,
        message: Message,
        generation: int,
        values_by_block: dict[int, Any],
        pending_blocks: deque[int],
    ) -> None:
        kind, message_generation, block, content = message
        if kind == READY:
            worker.ready = True
            if self.loss_times:
                self.recovered.append(time.perf_counter() - self.loss_times.popleft())
            return
        if kind == OUT_OF_STEP:
            raise OutOfStep(
                f"a worker stands at exchange {message_generation}, and the search that it works for at {generation}"
            )
        if kind == RAISED:
            raise failure(generation, block, *content)
        worker.block, self.deaths = None, 0
        if message_generation == generation:
            values_by_block[block] = content
        else:
            pending_blocks.appendleft(block)

    def _replace_worker(self, worker: Worker, values_by_block: dict[int, Any], pending_blocks: deque[int]) -> None:
        """Put another in the place of one that has died; what it was at goes to another, or nowhere."""
        self.workers.remove(worker)
        exit_reason = self.backend.exit_reason(worker)
        if not worker.ready and exit_reason is not None:  # the next one would end the same way
            raise EvaluationFailed(f"a worker ended before it could open its copy of the search: {exit_reason}")
        self.deaths += 1
        if self.deaths > MAX_DEATHS_PER_WORKER * self.size:
            raise EvaluationFailed(
                f"{self.deaths} workers have died one after the other without a single answer: is there memory for "
                f"{self.size} of them?"
            )
        self.loss_times.append(time.perf_counter())
        if worker.block is not None and self.lost == DROP:
            values_by_block[worker.block] = None
        elif worker.block is not None:
            pending_blocks.appendleft(worker.block)
        self.workers.append(self.backend.start_worker(self.copy()))

    def stop(self) -> None:
        self.backend.stop_workers(self.workers)
        self.workers.clear()
