"""How many perturbations does a search evaluate in a second, beside the least that products cost and evotorch?

A generation is 1000 perturbations of a net, judged by 128 garments: ask, evaluate, tell. All are taken in turn, many
rounds, in one process. Memory is the growth of the peak in a process of its own, for each.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from doxa_bench.contenders import evotorch, suppress_warnings
from doxa_bench.generations import (
    FLOOR,
    LEARNERS,
    RIVAL,
    SCALE,
    SIZE,
    TIMES,
    WIDTHS,
    fashion_mnist_batch,
    generation_step,
    make_net,
)
from doxa_bench.net_kinds import BATCH
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import NOT_INSTALLED, BenchTable, format_number, format_quartiles, missing_library_notes
from doxa_bench.timing import ratio_quartiles, time_side_by_side

ROUNDS, SECONDS = 21, 180.0


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    result: dict[str, Any] = {
        "settings": {
            "net": "-".join(map(str, WIDTHS)),
            "perturbations": SIZE,
            "batch": BATCH,
            "scale": SCALE,
            "rounds": settings.round_count(ROUNDS),
            "generations_of_memory": TIMES,
            **({"gpu": torch.cuda.get_device_name()} if settings.device.startswith("cuda") else {}),
        },
        "generations": {},
        "missing": {},
        "libraries": {RIVAL: {"version": evotorch.version()}},
    }
    cases = [FLOOR, *(case for case in LEARNERS if settings.wants(case))]
    if evotorch.version() is None:
        result["missing"]["SNES"] = {RIVAL: NOT_INSTALLED}
    else:
        cases.insert(1, RIVAL)
    x, y = fashion_mnist_batch(settings.device)
    with suppress_warnings():
        steps = {case: generation_step(case, make_net(settings.device), x, y) for case in cases}
        limit = settings.time_limit(SECONDS)
        seconds_by_case = time_side_by_side(
            steps, settings.round_count(ROUNDS), limit, settings.device, _report_rounds(settings)
        )
    del steps
    result["generations"] = {case: summarize_case(case, seconds_by_case) for case in cases}
    for case, figures in result["generations"].items():
        settings.say(f"{case}: {figures['per_second']:.0f} evaluations a second")
    yield result
    if settings.device == "cpu" and not Path("/proc/self/clear_refs").exists():
        return  # memory is counted as Linux counts it
    for case in cases:
        settings.progress(f"memory: {case}")
        result["generations"][case]["megabytes"] = growth_in_subprocess(case, settings.device) / 1e6
        yield result


def _report_rounds(settings: BenchSettings) -> Any:
    return lambda done: settings.progress(f"{done} rounds")


def summarize_case(case: str, seconds_by_case: dict[str, list[float]]) -> dict[str, Any]:
    """Evaluations a second, and how many times those of the floor and of evotorch, round by round."""
    case_seconds = seconds_by_case[case]
    baselines = {"floor": FLOOR, "rival": RIVAL}
    return {
        "ms": 1e3 * statistics.median(case_seconds),
        "per_second": SIZE / statistics.median(case_seconds),
        "rounds": len(case_seconds),
        **{
            key: speed_ratio(seconds_by_case[baseline], case_seconds)
            for key, baseline in baselines.items()
            if baseline in seconds_by_case
        },
    }


def speed_ratio(baseline_seconds: Sequence[float], case_seconds: Sequence[float]) -> dict[str, float]:
    """How many times as many evaluations a second as another."""
    return ratio_quartiles([a / b for a, b in zip(baseline_seconds, case_seconds, strict=True)])


def growth_in_subprocess(case: str, device: str) -> int:
    """The growth of memory in a process of its own."""
    command = [sys.executable, "-m", "doxa_bench.generations", case, device]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def show(result: dict[str, Any]) -> list[BenchTable]:
    generations, rival = result["generations"], result["generations"].get(RIVAL, {})
    rows = []
    for case, figures in generations.items():
        against_rival = figures.get("rival")
        memory, rival_memory = figures.get("megabytes"), rival.get("megabytes")
        rows.append(
            (
                NAMES.get(case, case),
                f"{figures['ms']:.1f}",
                f"{figures['per_second']:,.0f}",
                format_number(figures["floor"]["ratio"]),
                format_number(None if against_rival is None else against_rival["ratio"]),
                "–" if against_rival is None else format_quartiles(against_rival),
                format_number(memory, ".0f"),
                format_number(None if memory is None or rival_memory is None else memory / rival_memory),
            )
        )
    headers = ("perturbations", "generation, ms", "evaluations a second", "times the floor", "times evotorch", "spread")
    memory_heads = ("peak memory, MB", "of evotorch's")
    notes = [f"{name} {about['version']}" for name, about in result["libraries"].items() if about["version"]]
    return [
        BenchTable(
            "A generation", (*headers, *memory_heads), rows, notes=[*notes, *missing_library_notes(result["missing"])]
        )
    ]


NAMES = {FLOOR: "the floor: batched products, forward only, weights given", RIVAL: "evotorch, SNES"}
