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

from doxa_bench.contenders import evotorch, quiet
from doxa_bench.generations import FLOOR, LEARNERS, RIVAL, SCALE, SIZE, TIMES, WIDTHS, garments, generation, net
from doxa_bench.kinds import BATCH
from doxa_bench.settings import Settings
from doxa_bench.tables import NOT_INSTALLED, Table, number, refusals, spread
from doxa_bench.timing import ratio, side_by_side

ROUNDS, SECONDS = 21, 180.0


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {
        "settings": {
            "net": "-".join(map(str, WIDTHS)),
            "perturbations": SIZE,
            "batch": BATCH,
            "scale": SCALE,
            "rounds": settings.turns(ROUNDS),
            "generations_of_memory": TIMES,
            **({"gpu": torch.cuda.get_device_name()} if settings.device.startswith("cuda") else {}),
        },
        "generations": {},
        "missing": {},
        "libraries": {RIVAL: {"version": evotorch.version()}},
    }
    cases = [FLOOR, *(case for case in LEARNERS if settings.wants(case))]
    if evotorch.version() is None:
        found["missing"]["SNES"] = {RIVAL: NOT_INSTALLED}
    else:
        cases.insert(1, RIVAL)
    x, y = garments(settings.device)
    with quiet():
        steps = {case: generation(case, net(settings.device), x, y) for case in cases}
        limit = settings.seconds(SECONDS)
        taken = side_by_side(steps, settings.turns(ROUNDS), limit, settings.device, _heard(settings))
    del steps
    found["generations"] = {case: figures(case, taken) for case in cases}
    for case, own in found["generations"].items():
        settings.say(f"{case}: {own['per_second']:.0f} evaluations a second")
    yield found
    if settings.device == "cpu" and not Path("/proc/self/clear_refs").exists():
        return  # memory is counted as Linux counts it
    for case in cases:
        settings.progress(f"memory: {case}")
        found["generations"][case]["megabytes"] = measured(case, settings.device) / 1e6
        yield found


def _heard(settings: Settings) -> Any:
    return lambda done: settings.progress(f"{done} rounds")


def figures(case: str, taken: dict[str, list[float]]) -> dict[str, Any]:
    """Evaluations a second, and how many times those of the floor and of evotorch, round by round."""
    own = taken[case]
    beside = {"floor": FLOOR, "rival": RIVAL}
    return {
        "ms": 1e3 * statistics.median(own),
        "per_second": SIZE / statistics.median(own),
        "rounds": len(own),
        **{key: times(taken[other], own) for key, other in beside.items() if other in taken},
    }


def times(other: Sequence[float], own: Sequence[float]) -> dict[str, float]:
    """How many times as many evaluations a second as another."""
    return ratio([a / b for a, b in zip(other, own, strict=True)])


def measured(case: str, device: str) -> int:
    """The growth of memory in a process of its own."""
    command = [sys.executable, "-m", "doxa_bench.generations", case, device]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def show(found: dict[str, Any]) -> list[Table]:
    generations, rival = found["generations"], found["generations"].get(RIVAL, {})
    rows = []
    for case, own in generations.items():
        beside = own.get("rival")
        memory, theirs = own.get("megabytes"), rival.get("megabytes")
        rows.append(
            (
                NAMES.get(case, case),
                f"{own['ms']:.1f}",
                f"{own['per_second']:,.0f}",
                number(own["floor"]["ratio"]),
                number(None if beside is None else beside["ratio"]),
                "–" if beside is None else spread(beside),
                number(memory, ".0f"),
                number(None if memory is None or theirs is None else memory / theirs),
            )
        )
    heads = ("perturbations", "generation, ms", "evaluations a second", "times the floor", "times evotorch", "spread")
    memory_heads = ("peak memory, MB", "of evotorch's")
    notes = [f"{name} {about['version']}" for name, about in found["libraries"].items() if about["version"]]
    return [Table("A generation", (*heads, *memory_heads), rows, notes=[*notes, *refusals(found["missing"])])]


NAMES = {FLOOR: "the floor: batched products, forward only, weights given", RIVAL: "evotorch, SNES"}
