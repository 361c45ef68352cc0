"""Asking a question: threads, provenance, and a file that holds what has been found so far."""

from __future__ import annotations

import importlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from doxa.errors import BadInput, BrokenFile, did_you_mean
from doxa.results import stamp, to_plain_json, write_text_atomic
from doxa_bench.questions import TABLE
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable

THREADS = 2
ALL = "all"
ISA = "ONEDNN_MAX_CPU_ISA"  # what torch may use of a CPU

BenchResult = dict[str, Any]


def select_questions(requested: Sequence[str], device: str) -> list[str]:
    """The questions meant, in the order of the table where all are asked that the device can answer."""
    for question in requested:
        if question not in (*TABLE, ALL):
            raise BadInput(f"there is no question {question!r}{did_you_mean(question, (*TABLE, ALL), most=20)}")
    if ALL in requested:
        gpu = device.startswith("cuda")
        return [name for name, each in TABLE.items() if each.everywhere or (name == "captured_cost") == gpu]
    return list(dict.fromkeys(requested))


def measure_question(name: str, settings: BenchSettings) -> Iterator[BenchResult]:
    """What is found, whole and stamped, each time there is more; `complete` at last."""
    module = importlib.import_module(f"doxa_bench.{name}")
    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    result: BenchResult = {}
    common = {
        "threads": THREADS,
        "device": settings.device,
        "cpu": platform.processor() or platform.machine(),
        **({ISA: os.environ[ISA]} if ISA in os.environ else {}),
        **({"only": settings.only} if settings.only else {}),
        **({"quick": True} if settings.quick else {}),
    }

    def stamped(result: BenchResult, complete: bool) -> BenchResult:
        measurements = {key: value for key, value in result.items() if key not in ("settings", "seeds")}
        provenance = stamp({**common, **result.get("settings", {})}, result.get("seeds", [0]), start)
        if settings.device == "cpu":
            provenance["device"] = f"CPU, {THREADS} threads"  # though the machine may have a GPU too
        return to_plain_json({**provenance, "complete": complete, **measurements})

    for result in module.measure(settings):
        yield stamped(result, False)
    yield stamped(result, True)


def result_tables(name: str, result: BenchResult) -> list[BenchTable]:
    """An answer, whole or not, as tables."""
    return importlib.import_module(f"doxa_bench.{name}").show(result)


def result_path(folder: Path, name: str, device: str) -> Path:
    """Where an answer is kept: a file named after its question."""
    kind = device.partition(":")[0]
    return folder / (f"{name}_{kind}.json" if TABLE[name].everywhere else f"{name}.json")


def add_to_earlier(folder: Path | None, name: str, device: str) -> Callable[[BenchResult], BenchResult]:
    """Adds what is counted now to what a file already holds of a question whose answers are counts."""
    module = importlib.import_module(f"doxa_bench.{name}")
    if folder is None or not hasattr(module, "add"):
        raise BadInput(f"--add adds the counts of a campaign to those in --out FOLDER; got {name}, FOLDER {folder}")
    path = result_path(folder, name, device)
    if not path.exists():
        return lambda result: result
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenFile(f"{path} cannot be added to ({error}); remove it, or leave --add out") from None
    return lambda result: {**to_plain_json(module.add([earlier, result])), "complete": result["complete"]}


def write_result(folder: Path, name: str, result: BenchResult) -> Path:
    """Keep an answer as a file named after its question."""
    path = result_path(folder, name, result["settings"]["device"])
    write_text_atomic(path, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path
