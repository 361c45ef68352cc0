"""Workers that are actors of a Ray cluster."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from doxa.errors import BadInput, Diverged
from doxa.search.engines.attention import beat_interval
from doxa.search.engines.contract import CopySearch, Exchange
from doxa.search.engines.follower import EVALUATE, READY, Follower, LeaderGone, deserialize_search
from doxa.search.engines.worker_pool import Message, PoolSettings, Worker


def _ray() -> Any:
    """Ray itself, which takes a second to import, where it is needed."""
    try:
        import ray
    except ImportError:
        raise BadInput('engines.ray needs Ray, which is not installed: pip install "doxa[ray]"') from None
    return ray


@dataclass(frozen=True)
class Ray(PoolSettings):
    """So many actors, on as many machines as the cluster has, that evaluate what comes next.

    A cluster that is already connected is used, else one of this machine is started. What is said of `pool` holds.
    Needs the extra doxa[ray]. Moritz et al. (2018), Ray: a distributed framework for emerging AI applications.
    """

    options: Any = field(default=None, compare=False)  # for each actor, such as {"num_gpus": 1}

    @contextmanager
    def start_workers(self, copy: CopySearch) -> Iterator[Exchange]:
        ray = _ray()
        started_here = not ray.is_initialized()
        if started_here:
            ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
        try:
            backend = RayBackend(
                ray, self.threads, beat_interval(self.silence, self.deadline), dict(self.options or {})
            )
            with self.open_pool(backend, copy) as exchange:
                yield exchange
        finally:
            if started_here:
                ray.shutdown()


class RayActor:
    """What an actor is: a copy of the search that follows it in a thread, and answers when it is called."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.inbox: queue.Queue[Message] = queue.Queue()
        self.outbox: queue.Queue[Message] = queue.Queue()
        self.follower = Follower(self)

    def start(self, copy: bytes) -> Message:
        torch.set_num_threads(self.threads)
        search = deserialize_search(copy)
        threading.Thread(target=self._follow, args=(search,), daemon=True).start()
        return READY, -1, -1, None

    def _follow(self, search: Any) -> None:
        torch.set_num_threads(self.threads)
        try:
            search.follow(self.follower.exchange)
        except (LeaderGone, Diverged):  # the original tells
            return
        except BaseException:
            os._exit(1)  # nobody would answer any more: another takes its place

    def deliver(self, message: Message) -> Message | None:
        self.inbox.put(message)
        return self.outbox.get() if message[0] == EVALUATE else None

    def beat(self) -> Message:
        """Answered by a thread that has nothing else to do."""
        return self.follower.beat()

    def recv(self) -> Message:
        return self.inbox.get()

    def send(self, message: Message) -> None:
        self.outbox.put(message)


@dataclass
class RayConnection:
    """An actor, what it was last asked for, and the beat that it was asked for, if it has not been answered."""

    actor: Any
    pending: Any
    pulse: Any = None
    pulse_due: float = 0.0
    start_error: str | None = None  # it could not begin


class RayBackend:
    """Workers reached by calls."""

    explains_deaths = False  # a call that fails with its actor does not tell a crash from a kill
    start_seconds = 600.0  # a cluster may have to start machines first
    start_advice = "what is searched must be importable by Ray's workers"

    def __init__(self, ray: Any, threads: int, beat: float, options: dict[str, Any]) -> None:
        self.ray, self.threads, self.beat = ray, threads, beat
        # An actor that dies stays dead: another takes its place, with the search as it then stands.
        self.actor_class: Any = ray.remote(concurrency_groups={"beat": 1})(RayActor).options(
            **{"num_cpus": 0, **options, "max_restarts": 0, "max_task_retries": 0}
        )

    def start_worker(self, copy: bytes) -> Worker:
        actor: Any = self.actor_class.remote(self.threads)
        return Worker(RayConnection(actor, actor.start.remote(copy)))

    def send(self, workers: Sequence[Worker], message: Message) -> None:
        content = self.ray.put(message) if len(workers) > 1 else message  # once: what goes to many may be large
        for worker in workers:
            call = worker.connection.actor.deliver.remote(content)
            if message[0] == EVALUATE:
                worker.connection.pending = call

    def unsent(self, worker: Worker) -> int:
        return 0  # what is on its way is in Ray's store, which keeps what does not fit into memory on disk

    def receive(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Message | None]]:
        by_call = self._calls(workers)
        if not by_call:
            time.sleep(timeout)
            return []
        finished_calls, others = self.ray.wait(list(by_call), num_returns=1, timeout=timeout)
        if others:
            finished_calls += self.ray.wait(others, num_returns=len(others), timeout=0)[0]
        messages: list[tuple[Worker, Message | None]] = []
        dead = set[int]()
        for call in finished_calls:
            worker = by_call[call]
            message = self._receive_from(worker, call)
            if id(worker) not in dead:
                messages.append((worker, message))
            if message is None:
                dead.add(id(worker))
        return messages

    def _calls(self, workers: Sequence[Worker]) -> dict[Any, Worker]:
        """What is to be answered, a new beat of each worker among it when it is time for one."""
        by_call, now = dict[Any, Worker](), time.monotonic()
        for worker in workers:
            connection = worker.connection
            if connection.pulse is None and now >= connection.pulse_due:
                connection.pulse = connection.actor.beat.options(concurrency_group="beat").remote()
                connection.pulse_due = now + self.beat
            by_call |= {call: worker for call in (connection.pending, connection.pulse) if call is not None}
        return by_call

    def _receive_from(self, worker: Worker, call: Any) -> Message | None:
        connection = worker.connection
        if call == connection.pulse:
            connection.pulse = None
        else:
            connection.pending = None
        try:
            message: Message = self.ray.get(call)
        except self.ray.exceptions.RayActorError:
            return None
        except self.ray.exceptions.RayTaskError as error:  # the search cannot be opened there
            connection.start_error = repr(error.cause)
            return None
        return message

    def shows_life(self, worker: Worker) -> bool:
        """Nothing is known of an actor but what it answers."""
        return False

    def exit_reason(self, worker: Worker) -> str | None:
        start_error: str | None = worker.connection.start_error
        return start_error

    def dismiss(self, worker: Worker) -> None:
        self.ray.kill(worker.connection.actor)

    def stop_workers(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            self.ray.kill(worker.connection.actor)
