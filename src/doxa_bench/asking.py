"""Asking a question: threads, provenance, and a file that holds what has been found so far."""

from __future__ import annotations

import importlib
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from doxa.errors import BadInput, nearest
from doxa.results import plain, stamp, write_whole
from doxa_bench.questions import TABLE
from doxa_bench.settings import Settings
from doxa_bench.tables import Table

THREADS = 2
ALL = "all"
ISA = "ONEDNN_MAX_CPU_ISA"  # what torch may use of a CPU

Found = dict[str, Any]


def named(words: Sequence[str], device: str) -> list[str]:
    """The questions meant, in the order of the table where all are asked that the device can answer."""
    for word in words:
        if word not in (*TABLE, ALL):
            raise BadInput(f"there is no question {word!r}{nearest(word, (*TABLE, ALL), most=20)}")
    if ALL in words:
        gpu = device.startswith("cuda")
        return [name for name, each in TABLE.items() if each.everywhere or (name == "captured_cost") == gpu]
    return list(dict.fromkeys(words))


def answers(name: str, settings: Settings) -> Iterator[Found]:
    """What is found, whole and stamped, each time there is more; `complete` at last."""
    module = importlib.import_module(f"doxa_bench.{name}")
    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    found: Found = {}
    common = {
        "threads": THREADS,
        "device": settings.device,
        "cpu": platform.processor() or platform.machine(),
        **({ISA: os.environ[ISA]} if ISA in os.environ else {}),
        **({"only": settings.only} if settings.only else {}),
        **({"quick": True} if settings.quick else {}),
    }

    def stamped(found: Found, complete: bool) -> Found:
        own = {key: value for key, value in found.items() if key not in ("settings", "seeds")}
        about = stamp({**common, **found.get("settings", {})}, found.get("seeds", [0]), start)
        if settings.device == "cpu":
            about["device"] = f"CPU, {THREADS} threads"  # though the machine may have a GPU too
        return plain({**about, "complete": complete, **own})

    for found in module.ask(settings):
        yield stamped(found, False)
    yield stamped(found, True)


def tables(name: str, found: Found) -> list[Table]:
    """An answer, whole or not, as tables."""
    return importlib.import_module(f"doxa_bench.{name}").show(found)


def write(folder: Path, name: str, found: Found) -> Path:
    """Keep an answer as a file named after its question."""
    kind = found["settings"]["device"].partition(":")[0]
    path = folder / (f"{name}_{kind}.json" if TABLE[name].everywhere else f"{name}.json")
    write_whole(path, json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path
