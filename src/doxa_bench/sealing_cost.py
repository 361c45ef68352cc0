"""What do seals, checks, locks and flushes add to a fit of a minute, and to opening a run of 100 MB?

The fit is that of a named learner with a checkpoint after every epoch; time is counted where it is spent, by wrapping
whatever hashes, checks, locks or flushes. Opening is held against the hash of the belief's file and the bare reading of
its tensors into a net, the three in turn.
"""

from __future__ import annotations

import importlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from safetensors.torch import load_file

import doxa.engine.run
import doxa.storage.lock
import doxa.storage.sealed
from doxa.runs import Plan, learn, load_training_data, open_run
from doxa.runs.folder import build_spec_net
from doxa.runs.manifest import BELIEF, FileDigest
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable
from doxa_bench.timing import time_side_by_side

learning = importlib.import_module("doxa.runs.learn")  # whose name the function has too

DATA, LARGE_DATA = "mnist", "digits"
WIDTH, EPOCHS = 400, 17  # a fit of about a minute on two cores
LARGE_WIDTH = 2840  # a run of 100 MB
ROUNDS, SECONDS = 21, 120.0
OPEN, HASH, READ = "open_run", "its hash", "its tensors into a net"

# What is wrapped: a name for it, the object that has it, and its attribute there.
WRAPPED: dict[str, list[tuple[Any, str]]] = {
    "hashing": [(doxa.storage.sealed, "sha256_of")],
    "manifest": [(learning, "take_stock"), (learning, "write_manifest")],
    "opening again": [(learning, "open_run")],
    "checks of what is saved": [(doxa.engine.run, "state_trouble")],
    "locks": [(doxa.storage.lock, "_take"), (doxa.storage.lock, "sweep_temporaries")],
    "flushing to the disk": [(os, "fsync")],
}


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    result: dict[str, Any] = {"settings": {"data": DATA, "width": WIDTH, "epochs": EPOCHS, "large_width": LARGE_WIDTH}}
    with tempfile.TemporaryDirectory() as folder:
        result["fit"] = measure_fit(Path(folder) / "fit")
        settings.say(
            f"a fit of {result['fit']['seconds']:.1f} s: sealing is {100 * result['fit']['share']:.2f} % of it"
        )
        yield result
        result["open"] = measure_opening(Path(folder) / "large", settings)
        settings.say(
            f"a run of {result['open']['megabytes']:.0f} MB opens in {result['open']['ms'][OPEN]:.0f} ms, "
            f"{result['open']['beyond_ms']:.0f} ms beyond its hash and its tensors"
        )
        yield result


def measure_fit(folder: Path) -> dict[str, Any]:
    """Seconds of a fit, and those of them that go into sealing, each second counted once."""
    data = load_training_data(DATA)
    plan = Plan(learner="variational", net=f"mlp:{WIDTH},{WIDTH}", epochs=EPOCHS, draws=20)
    with counted() as seconds:
        start = time.perf_counter()
        learn(data, plan, folder, progress=False)
        total = time.perf_counter() - start
    return {"seconds": total, "parts": seconds, "share": sum(seconds.values()) / total}


@contextmanager
def counted() -> Iterator[dict[str, float]]:
    """Seconds by part of what is wrapped, the outermost of calls within calls."""
    seconds = dict.fromkeys(WRAPPED, 0.0)
    depth = 0

    def wrap(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **keys: Any) -> Any:
            nonlocal depth
            start, depth = time.perf_counter(), depth + 1
            try:
                return function(*arguments, **keys)
            finally:
                depth -= 1
                if not depth:
                    seconds[part] += time.perf_counter() - start

        return timed

    with ExitStack() as stack:
        for part, places in WRAPPED.items():
            for place, name in places:
                stack.enter_context(mock.patch.object(place, name, wrap(part, getattr(place, name))))
        yield seconds


def measure_opening(folder: Path, settings: BenchSettings) -> dict[str, Any]:
    """Milliseconds of opening a large run, of hashing its belief, and of reading it as it is, in turn."""
    plan = Plan(learner="variational", net=f"mlp:{LARGE_WIDTH},{LARGE_WIDTH}", epochs=1, draws=2)
    run = learn(load_training_data(LARGE_DATA), plan, folder, progress=False)
    path = folder / BELIEF

    def read() -> None:
        load_file(path)
        build_spec_net(run.spec)

    steps = {OPEN: lambda: open_run(folder), HASH: lambda: FileDigest.of_file(path), READ: read}
    seconds = time_side_by_side(steps, settings.round_count(ROUNDS), settings.time_limit(SECONDS))
    rounds = list(zip(*(seconds[name] for name in (OPEN, HASH, READ)), strict=True))
    return {
        "megabytes": path.stat().st_size / 1e6,
        "rounds": len(rounds),
        "ms": {name: 1e3 * statistics.median(seconds[name]) for name in steps},
        "beyond_hash_ms": 1e3 * statistics.median(o - h for o, h, _ in rounds),
        "beyond_ms": 1e3 * statistics.median(o - h - r for o, h, r in rounds),
    }


def show(result: dict[str, Any]) -> list[BenchTable]:
    tables = []
    if fit := result.get("fit"):
        total = fit["seconds"]
        rows = [(part, f"{s:.3f}", f"{100 * s / total:.2f} %") for part, s in fit["parts"].items()]
        rows.append(("all of it", f"{sum(fit['parts'].values()):.3f}", f"{100 * fit['share']:.2f} %"))
        tables.append(BenchTable(f"A fit of {total:.0f} s, saved after each epoch", ("part", "seconds", "share"), rows))
    if opening := result.get("open"):
        times = {**opening["ms"], "open_run beyond hash and tensors": opening["beyond_ms"]}
        title = f"Opening a run of {opening['megabytes']:.0f} MB, medians of {opening['rounds']} rounds"
        tables.append(BenchTable(title, ("step", "ms"), [(name, f"{ms:.0f}") for name, ms in times.items()]))
    return tables
