"""A search that may be killed at any time: `python -m doxa_bench.killable_search ENGINE FOLDER GENERATIONS`.

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

from doxa.results import write_text_atomic
from doxa.search import engines, minimise
from doxa.search.engines.contract import CopySearch, Engine, Exchange

SIZE, DIMENSION = 32, 100
WORKERS, SECONDS = 2, 0.02  # an evaluation before it is calm
START = 3.0
SILENCE = 3.0  # seconds after which a worker counts as frozen


@dataclass(frozen=True)
class TracedObjective:
    """The square distance from one, by a process that leaves traces."""

    folder: Path

    def __call__(self, w: Tensor) -> Tensor:
        if not (self.folder / "calm").exists():
            pid = str(os.getpid())
            busy_file, seen_file = self.folder / "busy" / pid, self.folder / "seen" / pid
            if not seen_file.exists():
                seen_file.touch()
            busy_file.touch()
            time.sleep(SECONDS)
            busy_file.unlink()
        return (w - 1).square().sum()


@dataclass(frozen=True)
class RecoveryTimingEngine:
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
    def start_workers(self, copy: CopySearch) -> Iterator[Exchange]:
        with self.engine.start_workers(copy) as exchange:
            try:
                yield exchange
            finally:
                self.recovered.extend(getattr(getattr(exchange, "__self__", None), "recovered", []))


def make_engine(name: str) -> Engine:
    """One by its name, with two workers that have a thread each."""
    makers: dict[str, Any] = {
        "in_process": lambda: engines.in_process(parts=16),
        "pool": lambda: engines.pool(WORKERS, silence=SILENCE),
        "torchrun": lambda: engines.torchrun(timeout=15),
        "ray": lambda: engines.ray(WORKERS, silence=SILENCE),
    }
    built_engine: Engine = makers[name]()
    return built_engine


def run_search(name: str, folder: Path, generations: int) -> None:
    """Search, and leave what was found."""
    timed_engine = RecoveryTimingEngine(make_engine(name), [])
    search_result = minimise(
        TracedObjective(folder),
        [START] * DIMENSION,
        generations=generations,
        size=SIZE,
        tolerance=0.0,
        engine=timed_engine,
        checkpoint=folder / "run",
        resume=True,
        progress=False,
    )
    if timed_engine.leads:
        outcome = {
            "bits": hashlib.sha256(search_result.path.numpy().tobytes()).hexdigest(),
            "generations": [int(row["generation"]) for row in search_result.trajectory],
            "recovered": timed_engine.recovered,
        }
        write_text_atomic(folder / "found.json", json.dumps(outcome))


def main() -> None:
    name, folder, generations = sys.argv[1:]
    torch.set_num_threads(1)
    with suppress(KeyboardInterrupt):
        run_search(name, Path(folder), int(generations))


if __name__ == "__main__":
    from doxa_bench import killable_search  # actors look for the objective where it was imported from

    killable_search.main()
