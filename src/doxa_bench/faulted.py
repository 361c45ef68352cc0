"""A search that may be killed at any time: `python -m doxa_bench.faulted ENGINE FOLDER GENERATIONS`.

It saves every generation in the folder and goes on from there. Its processes leave traces, so that another can tell
who is evaluating: `seen/PID` from a process's first evaluation on, `busy/PID` while one is under way. Once there is a
file `calm`, evaluations take no time; until then the search outlasts ten recoveries. What it came to is
`found.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa.results import write_whole
from doxa.search import engines, minimise
from doxa.search.engines.contract import Copy, Engine, Exchange

SIZE, DIMENSION = 32, 100
WORKERS, SECONDS = 2, 0.02  # an evaluation before it is calm
START = 3.0


@dataclass(frozen=True)
class Traced:
    """The square distance from one, by a process that leaves traces."""

    folder: Path

    def __call__(self, w: Tensor) -> Tensor:
        if not (self.folder / "calm").exists():
            own = str(os.getpid())
            busy, seen = self.folder / "busy" / own, self.folder / "seen" / own
            if not seen.exists():
                seen.touch()
            busy.touch()
            time.sleep(SECONDS)
            busy.unlink()
        return (w - 1).square().sum()


@dataclass(frozen=True)
class Told:
    """An engine whose crew tells, in the end, how long its own recoveries took."""

    engine: Engine
    recovered: list[float]

    @property
    def parts(self) -> int:
        return self.engine.parts

    @property
    def leads(self) -> bool:
        return self.engine.leads

    @contextmanager
    def working(self, copy: Copy) -> Iterator[Exchange]:
        with self.engine.working(copy) as exchange:
            try:
                yield exchange
            finally:
                self.recovered.extend(getattr(getattr(exchange, "__self__", None), "recovered", []))


def engine(name: str) -> Engine:
    """One by its name, with two workers that have a thread each."""
    makers: dict[str, Any] = {
        "in_process": lambda: engines.in_process(parts=16),
        "pool": lambda: engines.pool(WORKERS),
        "torchrun": lambda: engines.torchrun(timeout=20),
        "ray": lambda: engines.ray(WORKERS),
    }
    made: Engine = makers[name]()
    return made


def searched(name: str, folder: Path, generations: int) -> None:
    """Search, and leave what was found."""
    told = Told(engine(name), [])
    found = minimise(
        Traced(folder),
        [START] * DIMENSION,
        generations=generations,
        size=SIZE,
        tolerance=0.0,
        engine=told,
        checkpoint=folder / "run",
        resume=True,
        progress=False,
    )
    if told.leads:
        left = {
            "bits": hashlib.sha256(found.path.numpy().tobytes()).hexdigest(),
            "generations": [int(row["generation"]) for row in found.trajectory],
            "recovered": told.recovered,
        }
        write_whole(folder / "found.json", json.dumps(left))


def main() -> None:
    name, folder, generations = sys.argv[1:]
    torch.set_num_threads(1)
    with suppress(KeyboardInterrupt):
        searched(name, Path(folder), int(generations))


if __name__ == "__main__":
    from doxa_bench import faulted  # actors look for the objective where it was imported from

    faulted.main()
