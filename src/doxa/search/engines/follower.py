"""A worker: a copy of a search that evaluates what it is asked to, and moves on by what all have found."""

from __future__ import annotations

import io
import pickle
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.errors import BadInput, Diverged
from doxa.search.engines.channel import WorkerChannel
from doxa.search.engines.contract import Evaluate, FollowingSearch, describe_error
from doxa.search.engines.heartbeat import die_with_leader, start_heartbeat

# What a worker is told: evaluate a block, or what all blocks of a generation came to.
EVALUATE, ANSWERS = "evaluate", "answers"
# What it says: that it is there, that it has opened its copy, what a block came to, what went wrong, or that it stands
# elsewhere.
BEAT, READY, ANSWER, RAISED, OUT_OF_STEP = "beat", "ready", "answer", "raised", "astray"

# What an objective may raise in a worker, where nobody else ends a process or interrupts it.
WORKER_ERRORS = (Exception, SystemExit, KeyboardInterrupt)


def serialize_search(search: Any) -> bytes:
    """A search as bytes for a process of the same user; nothing of it is shared with the original."""
    buffer = io.BytesIO()
    try:
        torch.save(search, buffer)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadInput(
            f"workers need a copy of the search, and some of it cannot be copied to another process: {error}. Define "
            "nets, objectives, environments and schedules at the top of a module, not inside a function or as a lambda"
        ) from error
    return buffer.getvalue()


def deserialize_search(copy: bytes | bytearray) -> FollowingSearch:
    """The search that bytes are a copy of. They come from the process that started this one, never from a file."""
    search: FollowingSearch = torch.load(io.BytesIO(copy), weights_only=False)
    return search


class LeaderGone(Exception):
    """There is nobody left to work for."""


class LeaderConnection(Protocol):
    """The way to the search that a worker works for."""

    def recv(self) -> Any: ...

    def send(self, message: Any) -> None: ...


class Follower:
    """One worker's end of the connection."""

    def __init__(self, connection: LeaderConnection) -> None:
        self.connection = connection
        self.evaluating: tuple[int, int, float] | None = None  # generation, block, and since when

    def beat(self) -> tuple[Any, ...]:
        """That it is there, and for how many seconds it has been at which block; any thread may ask."""
        evaluating = self.evaluating
        if evaluating is None:
            return BEAT, -1, -1, 0.0
        generation, block, since = evaluating
        return BEAT, generation, block, time.monotonic() - since

    def exchange(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        """Evaluate blocks as they are asked for, until it is told what all of them came to."""
        while True:
            try:
                kind, message_generation, content = self.connection.recv()
            except (EOFError, OSError):
                raise LeaderGone from None
            if message_generation < generation:  # asked before it was known to be late
                continue
            if message_generation > generation:
                self._send_message((OUT_OF_STEP, generation, -1, None))
                raise LeaderGone
            if kind == ANSWERS:
                return [None if part is None else torch.from_numpy(part) for part in content]
            self._send_message(self._evaluate_block(generation, evaluate, blocks, content))

    def _evaluate_block(
        self, generation: int, evaluate: Evaluate, blocks: Sequence[slice], block: int
    ) -> tuple[Any, ...]:
        self.evaluating = generation, block, time.monotonic()
        try:
            return ANSWER, generation, block, evaluate(blocks[block]).cpu().numpy()
        except WORKER_ERRORS as error:
            return RAISED, generation, block, describe_error(error)
        finally:
            self.evaluating = None

    def _send_message(self, message: tuple[Any, ...]) -> None:
        try:
            self.connection.send(message)
        except (BrokenPipeError, OSError):
            raise LeaderGone from None


def _disregard(number: int, frame: Any) -> None:
    """Go on as if a signal had not come."""


def follow(connection: socket.socket, threads: int, beat: float, leader: int | None) -> None:
    """What a worker's process does: open its copy, and follow it until the original hangs up.

    It beats every so many seconds, and ends with its leader: at once where that one's number is given.
    """
    if leader is not None:
        die_with_leader(leader)
    # A terminal's Ctrl-C reaches every process, so does its end, and so does the SIGTERM of many schedulers: they are
    # requests to the original, which lets its workers go.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _disregard)  # unlike SIG_IGN this does not pass to programs that an objective starts
    torch.set_num_threads(threads)
    channel = WorkerChannel(connection)
    follower = Follower(channel)
    start_heartbeat(channel, follower.beat, every=beat)
    try:
        search = deserialize_search(channel.recv_bytes())
        channel.send((READY, -1, -1, None))
        with suppress(Diverged):  # as the original does, which tells
            search.follow(follower.exchange)
    except (LeaderGone, EOFError, ConnectionError):
        sys.exit(0)
