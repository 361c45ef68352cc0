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

from doxa.errors import BadInput, whole
from doxa.search.engines.contract import Copy, Evaluate, EvaluationFailed, Exchange, OutOfStep, failure
from doxa.search.engines.follower import ANSWERS, ASTRAY, EVALUATE, RAISED, READY

REISSUE, DROP = "reissue", "drop"
MOST = 10  # deaths of each worker without an answer of any, after which it is no accident

Words = tuple[Any, ...]


@dataclass(eq=False)
class Worker:
    """One of them: how to reach it, whether it has opened its copy, and the block that it evaluates."""

    line: Any
    ready: bool = False
    at: int | None = None


class Staff(Protocol):
    """How workers are reached: processes by pipes, actors by calls."""

    def hire(self, copy: bytes) -> Worker:
        """Start one with its copy of the search."""
        ...

    def tell(self, worker: Worker, words: Words) -> None:
        """Say something; one that is dead does not hear it."""
        ...

    def hear(self, workers: Sequence[Worker]) -> list[tuple[Worker, Words | None]]:
        """Wait until some have said something; None is what the dead say."""
        ...

    def ended_by_itself(self, worker: Worker) -> str | None:
        """Why a dead worker ended, in words, where nobody killed it."""
        ...

    def dismiss(self, workers: Sequence[Worker]) -> None:
        """Let them go."""
        ...


@dataclass(frozen=True)
class Terms:
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
            whole(name, getattr(self, name))
        if self.lost not in (REISSUE, DROP):
            raise BadInput(f'lost must be "{REISSUE}" or "{DROP}"; got {self.lost!r}')

    @contextmanager
    def at_work(self, staff: Staff, copy: Copy) -> Iterator[Exchange]:
        """A crew of a staff on these terms, let go at the end."""
        crew = Crew(staff, self.workers, self.lost, copy)
        try:
            yield crew.exchange
        finally:
            crew.stop()


class Crew:
    """So many workers of a staff, each of which is given what comes next when it is free."""

    def __init__(self, staff: Staff, size: int, lost: str, copy: Copy) -> None:
        self.staff, self.size, self.lost, self.copy = staff, size, lost, copy
        self.workers: list[Worker] = []
        self.deaths = 0  # since the last answer
        self.missing: deque[float] = deque()  # when those were lost that nobody stands in for yet
        self.recovered: list[float] = []  # seconds from a loss to another that is ready

    def exchange(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        """Give blocks to whoever is free until each has been evaluated, or dropped; then tell everyone."""
        if not self.workers:
            copy = self.copy()
            self.workers.extend(self.staff.hire(copy) for _ in range(self.size))
        todo, found = deque(range(len(blocks))), dict[int, Any]()
        while len(found) < len(blocks):
            for worker in self.workers:
                if worker.ready and worker.at is None and todo:
                    worker.at = todo.popleft()
                    self.staff.tell(worker, (EVALUATE, generation, worker.at))
            for worker, words in self.staff.hear(self.workers):
                if words is None:
                    self._lose(worker, found, todo)
                else:
                    self._heard(worker, words, generation, found, todo)
        answers = [found[k] for k in range(len(blocks))]
        for worker in self.workers:
            self.staff.tell(worker, (ANSWERS, generation, answers))
        return [None if part is None else torch.from_numpy(part.copy()) for part in answers]

    def _heard(self, worker: Worker, words: Words, generation: int, found: dict[int, Any], todo: deque[int]) -> None:
        kind, number, block, given = words
        if kind == READY:
            worker.ready = True
            if self.missing:
                self.recovered.append(time.perf_counter() - self.missing.popleft())
            return
        if kind == ASTRAY:
            raise OutOfStep(f"a worker stands at exchange {number}, and the search that it works for at {generation}")
        if kind == RAISED:
            raise failure(generation, block, *given)
        worker.at, self.deaths = None, 0
        if number == generation:
            found[block] = given
        else:
            todo.appendleft(block)

    def _lose(self, worker: Worker, found: dict[int, Any], todo: deque[int]) -> None:
        """Put another in the place of one that has died; what it was at goes to another, or nowhere."""
        self.workers.remove(worker)
        why = self.staff.ended_by_itself(worker)
        if not worker.ready and why is not None:  # the next one would end the same way
            raise EvaluationFailed(f"a worker ended before it could open its copy of the search: {why}")
        self.deaths += 1
        if self.deaths > MOST * self.size:
            raise EvaluationFailed(
                f"{self.deaths} workers have died one after the other without a single answer: is there memory for "
                f"{self.size} of them?"
            )
        self.missing.append(time.perf_counter())
        if worker.at is not None and self.lost == DROP:
            found[worker.at] = None
        elif worker.at is not None:
            todo.appendleft(worker.at)
        self.workers.append(self.staff.hire(self.copy()))

    def stop(self) -> None:
        self.staff.dismiss(self.workers)
        self.workers.clear()
