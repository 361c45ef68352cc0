"""What it takes a process to lead so many others through a generation: its own time, and bytes on the way."""

from __future__ import annotations

import pickle
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from doxa.search import engines, minimise
from doxa.search.engines.contract import Copy, Evaluate, Exchange
from doxa.search.engines.follower import ANSWER, ANSWERS, EVALUATE

HEAD = 4  # bytes before a message in a pipe


def nothing(points: Tensor) -> Tensor:
    """An objective that takes no time."""
    return points[:, 0]


@dataclass
class Clocked:
    """A pool whose leader notes the seconds of CPU that a generation takes it."""

    pool: engines.pool
    seconds: list[float] = field(default_factory=list)

    leads = True

    @property
    def parts(self) -> int:
        return self.pool.parts

    @contextmanager
    def working(self, copy: Copy) -> Iterator[Exchange]:
        with self.pool.working(copy) as exchange:

            def clocked(generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
                start = time.process_time()
                found = exchange(generation, evaluate, blocks)
                self.seconds.append(time.process_time() - start)
                return found

            yield clocked


def leading(workers: int, parts: int, generations: int) -> float:
    """Seconds of CPU a generation of the process that leads; the first ones, in which workers begin, do not count."""
    pool = Clocked(engines.pool(workers, parts=parts))
    minimise(
        nothing,
        [0.0, 0.0],
        batched=True,
        generations=generations,
        size=2 * parts,
        tolerance=0.0,
        engine=pool,
        progress=False,
    )
    return statistics.median(pool.seconds[len(pool.seconds) // 2 :])


def message_bytes() -> dict[str, float]:
    """What travels, as pipes carry it: for a block to be evaluated, its answer, a value in it, and all answers."""

    def size(words: object) -> int:
        return HEAD + len(pickle.dumps(words))

    def answer(values: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return np.zeros((values, 2), np.float32)

    one, many = size((ANSWER, 1000, 100, answer(1))), size((ANSWER, 1000, 100, answer(1001)))
    a_value = (many - one) / 1000
    told_one, told_many = (size((ANSWERS, 1000, [answer(2) for _ in range(parts)])) for parts in (16, 1016))
    return {
        "request": size((EVALUATE, 1000, 100)),
        "answer": one - a_value,
        "value": a_value,
        "told_block": (told_many - told_one) / 1000 - 2 * a_value,
    }
