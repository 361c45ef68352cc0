"""A worker: a copy of a search that evaluates what it is asked to, and moves on by what all have found."""

from __future__ import annotations

import io
import pickle
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.errors import BadInput, Diverged
from doxa.search.engines.contract import Evaluate, Follows, in_words

# What a worker is told: evaluate a block, or what all blocks of a generation came to.
EVALUATE, ANSWERS = "evaluate", "answers"
# What it says: that it has opened its copy, what a block came to, what went wrong, or that it stands elsewhere.
READY, ANSWER, RAISED, ASTRAY = "ready", "answer", "raised", "astray"


def copied(search: Any) -> bytes:
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


def opened(copy: bytes) -> Follows:
    """The search that bytes are a copy of. They come from the process that started this one, never from a file."""
    found: Follows = torch.load(io.BytesIO(copy), weights_only=False)
    return found


class Over(Exception):
    """There is nobody left to work for."""


class Line(Protocol):
    """The way to the search that a worker works for."""

    def recv(self) -> Any: ...

    def send(self, words: Any) -> None: ...


class Follower:
    """One worker's end of the line."""

    def __init__(self, line: Line) -> None:
        self.line = line

    def exchange(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        """Evaluate blocks as they are asked for, until it is told what all of them came to."""
        while True:
            try:
                kind, number, given = self.line.recv()
            except (EOFError, OSError):
                raise Over from None
            if number < generation:  # asked before it was known to be late
                continue
            if number > generation:
                self._say((ASTRAY, generation, -1, None))
                raise Over
            if kind == ANSWERS:
                return [None if part is None else torch.from_numpy(part) for part in given]
            self._say(self._answer(generation, evaluate, blocks, given))

    def _answer(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice], block: int) -> tuple[Any, ...]:
        try:
            return ANSWER, generation, block, evaluate(blocks[block]).cpu().numpy()
        except Exception as error:
            return RAISED, generation, block, in_words(error)

    def _say(self, words: tuple[Any, ...]) -> None:
        try:
            self.line.send(words)
        except (BrokenPipeError, OSError):
            raise Over from None


def follow(line: Connection, threads: int) -> None:
    """What a worker's process does: open its copy, and follow it until the original hangs up."""
    torch.set_num_threads(threads)
    # A terminal's Ctrl-C reaches every process: it is a request to the original, which lets its workers go.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        search = opened(line.recv_bytes())
        line.send((READY, -1, -1, None))
        with suppress(Diverged):  # as the original does, which tells
            search.follow(Follower(line).exchange)
    except (Over, EOFError, BrokenPipeError):
        sys.exit(0)
