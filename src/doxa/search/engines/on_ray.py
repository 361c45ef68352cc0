"""Workers that are actors of a Ray cluster."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from doxa.errors import BadInput, Diverged
from doxa.search.engines.contract import Copy, Exchange
from doxa.search.engines.crew import Terms, Words, Worker
from doxa.search.engines.follower import EVALUATE, READY, Follower, Over, opened


def _ray() -> Any:
    """Ray itself, which takes a second to import, where it is needed."""
    try:
        import ray
    except ImportError:
        raise BadInput('engines.ray needs Ray, which is not installed: pip install "doxa[ray]"') from None
    return ray


@dataclass(frozen=True)
class Ray(Terms):
    """So many actors, on as many machines as the cluster has, that evaluate what comes next.

    A cluster that is already connected is used, else one of this machine is started. What is said of `pool` holds.
    Needs the extra doxa[ray]. Moritz et al. (2018), Ray: a distributed framework for emerging AI applications.
    """

    options: Any = field(default=None, compare=False)  # for each actor, such as {"num_gpus": 1}

    @contextmanager
    def working(self, copy: Copy) -> Iterator[Exchange]:
        ray = _ray()
        own = not ray.is_initialized()
        if own:
            ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
        try:
            with self.at_work(Actors(ray, self.threads, dict(self.options or {})), copy) as exchange:
                yield exchange
        finally:
            if own:
                ray.shutdown()


class Seat:
    """What an actor is: a copy of the search that follows it in a thread, and answers when it is called."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.told: queue.Queue[Words] = queue.Queue()
        self.said: queue.Queue[Words] = queue.Queue()

    def begin(self, copy: bytes) -> Words:
        torch.set_num_threads(self.threads)
        search = opened(copy)
        threading.Thread(target=self._follow, args=(search,), daemon=True).start()
        return READY, -1, -1, None

    def _follow(self, search: Any) -> None:
        torch.set_num_threads(self.threads)
        try:
            search.follow(Follower(self).exchange)
        except (Over, Diverged):  # the original tells
            return
        except Exception:
            os._exit(1)  # nobody would answer any more: another takes its place

    def hear(self, words: Words) -> Words | None:
        self.told.put(words)
        return self.said.get() if words[0] == EVALUATE else None

    def recv(self) -> Words:
        return self.told.get()

    def send(self, words: Words) -> None:
        self.said.put(words)


@dataclass
class Call:
    """An actor, and what it was last asked for."""

    actor: Any
    pending: Any
    why: str | None = None  # it could not begin


class Actors:
    """Workers reached by calls."""

    def __init__(self, ray: Any, threads: int, options: dict[str, Any]) -> None:
        self.ray, self.threads = ray, threads
        # An actor that dies stays dead: another takes its place, with the search as it then stands.
        self.seat: Any = ray.remote(Seat).options(
            **{"num_cpus": 0, **options, "max_restarts": 0, "max_task_retries": 0}
        )

    def hire(self, copy: bytes) -> Worker:
        actor: Any = self.seat.remote(self.threads)
        return Worker(Call(actor, actor.begin.remote(copy)))

    def tell(self, worker: Worker, words: Words) -> None:
        call = worker.line.actor.hear.remote(words)
        if words[0] == EVALUATE:
            worker.line.pending = call

    def hear(self, workers: Sequence[Worker]) -> list[tuple[Worker, Words | None]]:
        by_call = {w.line.pending: w for w in workers if w.line.pending is not None}
        done, _ = self.ray.wait(list(by_call), num_returns=1)
        return [(by_call[one], self._heard(by_call[one], one)) for one in done]

    def _heard(self, worker: Worker, call: Any) -> Words | None:
        worker.line.pending = None
        try:
            found: Words = self.ray.get(call)
        except self.ray.exceptions.RayActorError:
            return None
        except self.ray.exceptions.RayTaskError as error:  # the search cannot be opened there
            worker.line.why = f"{error.cause!r}; what is searched must be importable by Ray's workers"
            return None
        return found

    def ended_by_itself(self, worker: Worker) -> str | None:
        why: str | None = worker.line.why
        return why

    def dismiss(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            self.ray.kill(worker.line.actor)
