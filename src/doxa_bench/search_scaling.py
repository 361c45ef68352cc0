"""What does a generation cost for so many workers and weights, in time, bytes and memory?

Measured are the parts of which a generation is made, and fitted the constants by which they grow: evaluations, with
perturbations × weights × rows; the update, which every worker makes for itself from all seeds, with perturbations ×
weights, and once with weights; what the process that leads does for each block and worker; memory, with weights. The
rest is arithmetic.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from doxa_bench import crews, moving
from doxa_bench.kinds import BATCH
from doxa_bench.moving import ESTIMATORS, Worker
from doxa_bench.settings import Settings
from doxa_bench.tables import Table, number

ROUNDS, SECONDS = 7, 6.0  # of one size of net
WIDTHS = {"cpu": (100, 300, 1000, 3000), "cuda": (100, 1000, 3000, 10_000)}
WORK = {"cpu": 1e8, "cuda": 1e10}  # perturbations × weights of a generation, about
FEWEST, MOST = 2, 1000  # perturbations
CREWS = tuple((workers, parts) for workers in (1, 4, 16, 64, 256) for parts in (16, 64, 256))
GENERATIONS = 20
EXTRAPOLATED = "†"
PER = {"lead": "at rest", "lead_block": "for each block", "lead_block_worker": "for each block and worker"}
# What is asked of the model: workers and weights.
ASKED = ((2, 1e5), (16, 1e6), (100, 1e6), (100, 1e8), (10_000, 1e6), (10_000, 1e9))


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    kind = settings.device.partition(":")[0]
    found: dict[str, Any] = {
        "settings": {
            "batch": BATCH,
            "rounds": settings.turns(ROUNDS),
            "widths": WIDTHS[kind],
            **({"gpu": torch.cuda.get_device_name()} if kind == "cuda" else {}),
        },
        "nets": [],
        "crews": [],
    }
    for width in WIDTHS[kind]:
        for estimator in ESTIMATORS:
            if settings.wants(estimator):
                settings.progress(f"{estimator}, {moving.weights(width):,} weights")
                found["nets"].append(measured(estimator, width, settings))
                yield found
    if kind == "cpu":
        for workers, parts in CREWS:
            settings.progress(f"{workers} workers, {parts} blocks")
            seconds = crews.leading(workers, parts, GENERATIONS)
            found["crews"].append({"workers": workers, "parts": parts, "seconds": seconds})
            yield found
        found["bytes"] = crews.message_bytes()
    found["constants"] = constants(found)
    settings.say(", ".join(f"{name} {value:.3g}" for name, value in found["constants"].items()))
    yield found


def measured(estimator: str, width: int, settings: Settings) -> dict[str, Any]:
    """The parts of a worker's generation, and its memory, for a net of some width."""
    device, count = settings.device, moving.weights(width)
    size = 2 * max(2, int(min(MOST, WORK[device.partition(":")[0]] / count)) // 2)
    (evaluate, move), (_, least) = (timed(estimator, width, n, settings) for n in (size, FEWEST))
    each = max(0.0, move - least) / (size - FEWEST)
    return {
        "estimator": estimator,
        "weights": count,
        "perturbations": size,
        "evaluate": evaluate,
        "move": move,
        "move_of_two": least,
        "evaluate_ns": 1e9 * evaluate / (size * count * BATCH),
        "move_ns": 1e9 * each / count,
        "once_ns": 1e9 * max(0.0, least - FEWEST * each) / count,
        "bytes": memory(estimator, width, device),
    }


def timed(estimator: str, width: int, size: int, settings: Settings) -> tuple[float, float]:
    """Seconds in which a worker evaluates so many perturbations, and in which it moves on: medians over rounds."""
    worker = Worker(moving.net(width, settings.device), estimator, size, settings.device)
    worker.generation()
    rounds: list[tuple[float, float]] = []
    while len(rounds) < settings.turns(ROUNDS) and sum(map(sum, rounds)) < settings.seconds(SECONDS):
        rounds.append(worker.generation())
    evaluate, move = (statistics.median(column) for column in zip(*rounds, strict=True))
    return evaluate, move


def memory(estimator: str, width: int, device: str) -> int | None:
    """The growth of the peak in a process of its own, where it can be counted."""
    if device == "cpu" and not Path("/proc/self/clear_refs").exists():
        return None
    command = [sys.executable, "-m", "doxa_bench.moving", estimator, str(width), device]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def constants(found: dict[str, Any]) -> dict[str, float]:
    """The few numbers of the model: those of nets as the largest has them, those of crews by least squares."""
    known: dict[str, float] = {}
    for estimator in ESTIMATORS:
        rows = [row for row in found["nets"] if row["estimator"] == estimator]
        if not rows:
            continue
        last = max(rows, key=lambda row: row["weights"])
        known |= {f"{estimator}, {name}": last[name] for name in ("evaluate_ns", "move_ns", "once_ns")}
        if last["bytes"] is not None:
            known[f"{estimator}, bytes"] = last["bytes"] / last["weights"]
    if found["crews"]:
        (base, block, pair), errors = led(found["crews"])
        known |= {"lead": base, "lead_block": block, "lead_block_worker": pair}
        known |= {f"{name}, error": error for name, error in zip(PER, errors, strict=True)}
    return known


def led(rows: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Seconds of the leader, at rest, for each block, and for each block and worker, with their standard errors.

    By least squares, none of them below 0: the most negative is left out, and the rest are found again.
    """
    terms = torch.tensor([[1.0, r["parts"], r["parts"] * r["workers"]] for r in rows], dtype=torch.float64)
    seconds = torch.tensor([r["seconds"] for r in rows], dtype=torch.float64)
    relative = terms / seconds[:, None]  # relative errors count alike: the shortest are as telling as the longest
    found, errors, used = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), [0, 1, 2]
    while used:
        own = relative[:, used]
        fitted = torch.linalg.lstsq(own, torch.ones_like(seconds)[:, None]).solution.flatten()
        if bool((fitted >= 0).all()):
            noise = (own @ fitted - 1).square().sum() / max(1, len(rows) - len(used))
            found[used] = fitted
            errors[used] = (noise * torch.linalg.inv(own.T @ own).diagonal()).sqrt()
            break
        used.pop(int(fitted.argmin()))
    return found.tolist(), errors.tolist()


def model(found: dict[str, Any], workers: int, weights: float, estimator: str = "weight space") -> dict[str, Any]:
    """A generation by arithmetic: a pair for each worker, 1000 perturbations at least, a block for each worker."""
    known = found["constants"]
    size, parts = max(MOST, 2 * workers), max(16, workers)
    evaluate = known[f"{estimator}, evaluate_ns"] * 1e-9 * -(-size // workers) * weights * BATCH
    once = known[f"{estimator}, once_ns"] * 1e-9 * weights
    move = once + known[f"{estimator}, move_ns"] * 1e-9 * size * weights
    shared = once + (move - once) / workers  # if each made the update of its share of the weights
    answer: dict[str, Any] = {"perturbations": size, "evaluate": evaluate, "move": move, "shared": shared}
    if f"{estimator}, bytes" in known:
        answer["memory"] = known[f"{estimator}, bytes"] * weights
    if "lead" in known:
        answer["lead"] = known["lead"] + known["lead_block"] * parts + known["lead_block_worker"] * parts * workers
        own = found["bytes"]
        answer["up"] = parts * (own["request"] + own["answer"]) + size * own["value"]
        answer["down"] = workers * (parts * own["told_block"] + size * own["value"])
        answer["sums"] = 2 * 4 * weights * parts  # of local perturbations
    return answer


def show(found: dict[str, Any]) -> list[Table]:
    nets = [
        (
            row["estimator"],
            f"{row['weights']:,}",
            f"{row['perturbations']:,}",
            f"{1e3 * row['evaluate_ns']:.1f}",
            f"{row['move_ns']:.2f}",
            f"{row['once_ns']:.1f}",
            number(None if row["bytes"] is None else row["bytes"] / row["weights"], ".0f"),
        )
        for row in found["nets"]
    ]
    heads = ("perturbations", "weights d", "N", "evaluate, ps each N d B")
    more = ("update, ns each N d", "and once each d", "memory, bytes a weight")
    tables = [Table("A worker that evaluates all of a generation", (*heads, *more), nets)]
    known = found.get("constants", {})
    if found["crews"] and "lead" in known:
        crews = [(str(r["workers"]), str(r["parts"]), f"{1e3 * r['seconds']:.2f}") for r in found["crews"]]
        said = ", ".join(f"{known[name]:.2g} ± {known[f'{name}, error']:.1g} s {per}" for name, per in PER.items())
        notes = ["workers are a thread that answers for all at once, so that there can be many"]
        notes += [f"fitted: {said}"]
        of_crews = ("workers", "blocks", "its own ms a generation")
        tables.append(Table("A process that leads a pool", of_crews, crews, 2, notes))
    if all(f"{estimator}, move_ns" in found.get("constants", {}) for estimator in ESTIMATORS):
        tables += modelled(found)
    return tables


def modelled(found: dict[str, Any]) -> list[Table]:
    """What generations would cost, in time and in bytes; beyond what was measured it is extrapolated, and marked."""
    most = max(row["weights"] for row in found["nets"]), max((row["workers"] for row in found["crews"]), default=1)
    time, room = [], []
    for workers, weights in ASKED:
        full, thin = model(found, workers, weights), model(found, workers, weights, "low rank")
        who, what = marked(f"{workers:,}", workers > most[1]), marked(f"{weights / 1e6:,g} M", weights > most[0])
        case = who, what
        parts = full["evaluate"], full["move"], thin["evaluate"], thin["move"], full["shared"], full.get("lead")
        time.append((*case, *map(seconds, parts)))
        room.append(
            (
                *case,
                f"{full['perturbations']:,}",
                *(size_of(full.get(name)) for name in ("up", "down", "sums", "memory")),
            )
        )
    heads = ("workers", "weights")
    notes = [f"{EXTRAPOLATED} extrapolated: measured were up to {most[0]:,} weights and {most[1]} workers"]
    even = (f"{parity(found, estimator):.0f} workers with {estimator} perturbations" for estimator in ESTIMATORS)
    notes.append(f"on {BATCH} rows the update takes longer than the evaluations from {', '.join(even)} on")
    of_time = ("evaluate", "update", "evaluate, low rank", "update, low rank", "update, shared out", "leader")
    of_room = ("N", "received by the leader", "sent to all", "received, local", "memory of a worker")
    return [
        Table("Time of a generation by the model", (*heads, *of_time), time, 0, notes),
        Table("Bytes of a generation by the model", (*heads, *of_room), room, 0, notes[:1]),
    ]


def marked(words: str, beyond: bool) -> str:
    return f"{words} {EXTRAPOLATED}" if beyond else words


def parity(found: dict[str, Any], estimator: str) -> float:
    """The number of workers at which evaluating a share takes as long as making all perturbations again."""
    known = found["constants"]
    return float(known[f"{estimator}, evaluate_ns"] * BATCH / max(known[f"{estimator}, move_ns"], 1e-12))


def seconds(value: float | None) -> str:
    """Seconds to two digits, or hours where they are many."""
    if value is None:
        return "–"
    number, unit = (value, "s") if value < 3600 else (value / 3600, "h")
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.2g} {unit}"


def size_of(count: float | None) -> str:
    """Bytes to two digits, in thousands."""
    if count is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}" if count >= 100 else f"{count:.2g} {unit}"
        count /= 1000
    raise AssertionError
