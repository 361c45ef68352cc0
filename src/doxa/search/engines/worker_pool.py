"""Workers at work for one search, wherever they are: who is given what, and what becomes of those that are lost."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.errors import BadInput, require_positive, require_whole
from doxa.search.engines.attention import Attention, Clock, beat_interval
from doxa.search.engines.contract import CopySearch, Evaluate, EvaluationFailed, Exchange, OutOfStep, failure
from doxa.search.engines.follower import ANSWERS, BEAT, EVALUATE, OUT_OF_STEP, RAISED, READY

REISSUE, DROP = "reissue", "drop"
MAX_DEATHS_PER_WORKER = 10  # deaths of each worker without an answer of any, after which it is no accident
MAX_LOSSES_PER_BLOCK = 3  # workers that did not answer, though nobody killed them, when asked for the same block
MAX_UNEXPLAINED_PER_BLOCK = 6  # the same, where nobody knows whether the block was to blame
MAX_UNSENT = 1 << 26  # bytes held for a worker that is behind, before the search waits for it
GAP = 2.0  # beats: of a longer gap between two looks no more counts as silence

Message = tuple[Any, ...]


@dataclass(eq=False)
class Worker:
    """One of them: how to reach it, whether it has opened its copy, and the block that it evaluates.

    Seconds are those in which the search listened: when it was given its block, when it began with it by its own word,
    when it was last heard, and when it was last known to live.
    """

    connection: Any
    ready: bool = False
    block: int | None = None
    has_beaten: bool = False
    heard_at: float = 0.0
    lived_at: float = 0.0
    given_at: float = 0.0
    began_at: float | None = None


class WorkerBackend(Protocol):
    """How workers are reached: processes by sockets, actors by calls. Nothing here waits for a worker but `receive`."""

    @property
    def start_seconds(self) -> float:
        """How long a worker may take to its first beat."""
        ...

    def start_worker(self, copy: bytes) -> Worker:
        """Start one with its copy of the search."""
        ...

    def send(self, workers: Sequence[Worker], message: Message) -> None:
        """Say something to some; one that is dead does not hear it."""
        ...

    def unsent(self, worker: Worker) -> int:
        """Bytes of what was said to one that are held here until it listens."""
        ...

    @property
    def explains_deaths(self) -> bool:
        """Whether it is known of each dead worker if somebody killed it."""
        ...

    @property
    def start_advice(self) -> str:
        """What to do where workers cannot begin."""
        ...

    def receive(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Message | None]]:
        """Wait until some have said something, so many seconds at most; None is what the dead say."""
        ...

    def shows_life(self, worker: Worker) -> bool:
        """Whether one that says nothing has been seen to work since this was last asked."""
        ...

    def dismiss(self, worker: Worker) -> None:
        """End one that does not answer, stopped or not."""
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
    another, or dropped. A generation is divided into so many `parts`, whoever takes them. One that gives no sign of
    life for `silence` seconds is lost, and so is one that takes more than `deadline` seconds for a part.
    """

    workers: int = field(default=2, compare=False)
    threads: int = 1
    lost: str = field(default=REISSUE, compare=False)
    parts: int = 16
    silence: float = field(default=30.0, compare=False, kw_only=True)
    deadline: float | None = field(default=None, compare=False, kw_only=True)

    leads = True

    def __post_init__(self) -> None:
        for name in ("workers", "threads", "parts"):
            require_whole(name, getattr(self, name))
        if self.lost not in (REISSUE, DROP):
            raise BadInput(f'lost must be "{REISSUE}" or "{DROP}"; got {self.lost!r}')
        require_positive("silence", self.silence)
        if self.deadline is not None:
            require_positive("deadline", self.deadline)

    @contextmanager
    def open_pool(self, backend: WorkerBackend, copy: CopySearch) -> Iterator[Exchange]:
        """A pool of a backend on these settings, let go at the end."""
        pool = WorkerPool(backend, self, copy)
        try:
            yield pool.exchange
        finally:
            pool.stop()


@dataclass
class Exchanging:
    """A generation under way: blocks that are to be given out, and what the others came to."""

    generation: int
    pending: deque[int]
    values: dict[int, Any] = field(default_factory=dict)
    losses: Counter[int] = field(default_factory=Counter)  # of each block, to workers that nobody killed
    unexplained: Counter[int] = field(default_factory=Counter)  # and to those of which nothing is known


class WorkerPool:
    """So many workers of a backend, each of which is given what comes next when it is free."""

    def __init__(
        self, backend: WorkerBackend, settings: PoolSettings, copy: CopySearch, clock: Clock = time.monotonic
    ) -> None:
        self.backend, self.settings, self.copy = backend, settings, copy
        self.workers: list[Worker] = []
        self.deaths = 0  # since the last answer
        self.last_reason = ""  # of the last loss, where it is known
        self.loss_times: deque[float] = deque()  # when those were lost that nobody stands in for yet
        self.recovered: list[float] = []  # seconds from a loss to another that is ready
        self.beat = beat_interval(settings.silence, settings.deadline)
        self.attention = Attention(GAP * self.beat, clock)

    def exchange(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        """Give blocks to whoever is free until each has been evaluated, or dropped; then tell everyone."""
        if not self.workers:
            copy = self.copy()
            for _ in range(self.settings.workers):
                self._start_worker(copy)
        exchanging = Exchanging(generation, deque(range(len(blocks))))
        self.attention.begin()
        while len(exchanging.values) < len(blocks) or any(map(self._is_far_behind, self.workers)):
            self._give_out(exchanging)
            messages = self.backend.receive(self.workers, self.beat)
            self.attention.look()
            for worker, message in messages:
                if message is None:
                    self._handle_death(worker, exchanging)
                else:
                    self._handle_message(worker, message, exchanging)
            self._replace_unanswering(exchanging)
        answers = [exchanging.values[k] for k in range(len(blocks))]
        self.backend.send(self.workers, (ANSWERS, generation, answers))
        return [None if part is None else torch.from_numpy(part.copy()) for part in answers]

    def _is_far_behind(self, worker: Worker) -> bool:
        """Whether more waits for one than may: answers of local perturbations are as large as the weights."""
        return self.backend.unsent(worker) > MAX_UNSENT

    def _start_worker(self, copy: bytes) -> None:
        worker = self.backend.start_worker(copy)
        worker.heard_at = worker.lived_at = self.attention.seconds
        self.workers.append(worker)

    def _give_out(self, exchanging: Exchanging) -> None:
        for worker in self.workers:
            if worker.ready and worker.block is None and exchanging.pending:
                worker.block = exchanging.pending.popleft()
                worker.given_at, worker.began_at = self.attention.seconds, None
                self.backend.send([worker], (EVALUATE, exchanging.generation, worker.block))

    def _handle_message(self, worker: Worker, message: Message, exchanging: Exchanging) -> None:
        kind, message_generation, block, content = message
        worker.has_beaten, worker.heard_at = True, self.attention.seconds
        worker.lived_at = worker.heard_at
        if kind == BEAT:
            if worker.began_at is None and (message_generation, block) == (exchanging.generation, worker.block):
                # Only once: its own clock runs on while everyone is stopped.
                worker.began_at = max(worker.given_at, self.attention.seconds - content)
            return
        if kind == READY:
            worker.ready = True
            if self.loss_times:
                self.recovered.append(time.perf_counter() - self.loss_times.popleft())
            return
        if kind == OUT_OF_STEP:
            raise OutOfStep(
                f"a worker stands at exchange {message_generation}, and the search that it works for at "
                f"{exchanging.generation}"
            )
        if kind == RAISED:
            raise failure(exchanging.generation, block, *content)
        worker.block, self.deaths = None, 0
        if message_generation == exchanging.generation:
            exchanging.values[block] = content
        else:
            exchanging.pending.appendleft(block)

    def _handle_death(self, worker: Worker, exchanging: Exchanging) -> None:
        exit_reason, self.last_reason = self.backend.exit_reason(worker), ""
        if exit_reason is not None:
            if not worker.ready:  # the next one would end the same way
                raise EvaluationFailed(
                    f"a worker ended before it could open its copy of the search: {exit_reason}; "
                    f"{self.backend.start_advice}"
                )
            self._count_loss(worker, f"ended by itself, {exit_reason}", exchanging)
        elif not self.backend.explains_deaths:
            reason = "died, and nothing is known of why: the objective may crash there, or memory be too little"
            self._count_loss(worker, reason, exchanging, explained=False)
        self._replace_worker(worker, exchanging)

    def _replace_unanswering(self, exchanging: Exchanging) -> None:
        """Put others in the place of those that are silent, or at a block for too long."""
        for worker in list(self.workers):
            reason = self._overdue(worker)
            if reason is None:
                continue
            self.backend.dismiss(worker)
            self._count_loss(worker, reason, exchanging)
            self._replace_worker(worker, exchanging)

    def _count_loss(self, worker: Worker, reason: str, exchanging: Exchanging, explained: bool = True) -> None:
        """Give up on a block that costs one worker after the other, though nobody kills them."""
        self.last_reason = f": the last one {reason}"
        if worker.block is None or self.settings.lost == DROP:
            return
        losses, limit = (
            (exchanging.losses, MAX_LOSSES_PER_BLOCK)
            if explained
            else (exchanging.unexplained, MAX_UNEXPLAINED_PER_BLOCK)
        )
        losses[worker.block] += 1
        if losses[worker.block] >= limit:
            raise EvaluationFailed(
                f"{limit} workers were lost one after the other to block {worker.block} of the "
                f"population in generation {exchanging.generation + 1}: the last one {reason}. Nothing was changed by "
                "this generation"
            )

    def _overdue(self, worker: Worker) -> str | None:
        """Why one is not waited for any longer, in words."""
        silence, deadline, now = self.settings.silence, self.settings.deadline, self.attention.seconds
        unheard = now - worker.heard_at
        busy = unheard if worker.began_at is None else now - worker.began_at
        if deadline is not None and worker.block is not None and busy > deadline:
            return f"took longer than its deadline of {deadline:g} s: the objective may hang there"
        if unheard > GAP * self.beat and self.backend.shows_life(worker):
            worker.lived_at = now
        allowed = silence if worker.has_beaten else max(silence, self.backend.start_seconds)
        if now - worker.lived_at > allowed:
            return (
                f"gave no sign of life for {allowed:g} s: is it stopped, or the objective in a call that lets no other "
                "thread of Python run? Then give the engine a longer silence"
            )
        return None

    def _replace_worker(self, worker: Worker, exchanging: Exchanging) -> None:
        """Put another in the place of one that is lost; what it was at goes to another, or nowhere."""
        self.workers.remove(worker)
        self.deaths += 1
        if self.deaths > MAX_DEATHS_PER_WORKER * self.settings.workers:
            raise EvaluationFailed(
                f"{self.deaths} workers were lost one after the other without a single answer"
                f"{self.last_reason or f': is there memory for {self.settings.workers} of them?'}"
            )
        self.loss_times.append(time.perf_counter())
        if worker.block is not None and self.settings.lost == DROP:
            exchanging.values[worker.block] = None
        elif worker.block is not None:
            exchanging.pending.appendleft(worker.block)
        self._start_worker(self.copy())

    def stop(self) -> None:
        """Let all workers go."""
        self.backend.stop_workers(self.workers)
        self.workers.clear()
