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

from doxa_bench import pool_leader, worker_cost
from doxa_bench.net_kinds import BATCH
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, format_number
from doxa_bench.worker_cost import ESTIMATORS, TimedWorker

ROUNDS, SECONDS = 7, 6.0  # of one size of net
WIDTHS = {"cpu": (100, 300, 1000, 3000), "cuda": (100, 1000, 3000, 10_000)}
WORK = {"cpu": 1e8, "cuda": 1e10}  # perturbations × weights of a generation, about
FEWEST, MOST = 2, 1000  # perturbations
CREWS = tuple((workers, parts) for workers in (1, 4, 16, 64, 256) for parts in (16, 64, 256))
GENERATIONS = 20
EXTRAPOLATED = "†"
PER = {"lead": "at rest", "lead_block": "for each block", "lead_block_worker": "for each block and worker"}
# What is asked of the model: workers and weights.
MODELLED_CASES = ((2, 1e5), (16, 1e6), (100, 1e6), (100, 1e8), (10_000, 1e6), (10_000, 1e9))


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    kind = settings.device.partition(":")[0]
    result: dict[str, Any] = {
        "settings": {
            "batch": BATCH,
            "rounds": settings.round_count(ROUNDS),
            "widths": WIDTHS[kind],
            **({"gpu": torch.cuda.get_device_name()} if kind == "cuda" else {}),
        },
        "nets": [],
        "crews": [],
    }
    for width in WIDTHS[kind]:
        for estimator in ESTIMATORS:
            if settings.wants(estimator):
                settings.progress(f"{estimator}, {worker_cost.weight_count(width):,} weights")
                result["nets"].append(measure_net(estimator, width, settings))
                yield result
    if kind == "cpu":
        for workers, parts in CREWS:
            settings.progress(f"{workers} workers, {parts} blocks")
            seconds = pool_leader.leader_seconds(workers, parts, GENERATIONS)
            result["crews"].append({"workers": workers, "parts": parts, "seconds": seconds})
            yield result
        result["bytes"] = pool_leader.message_bytes()
    result["constants"] = fit_constants(result)
    settings.say(", ".join(f"{name} {value:.3g}" for name, value in result["constants"].items()))
    yield result


def measure_net(estimator: str, width: int, settings: BenchSettings) -> dict[str, Any]:
    """The parts of a worker's generation, and its memory, for a net of some width."""
    device, count = settings.device, worker_cost.weight_count(width)
    size = 2 * max(2, int(min(MOST, WORK[device.partition(":")[0]] / count)) // 2)
    (evaluate, move), (_, least) = (time_worker(estimator, width, n, settings) for n in (size, FEWEST))
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
        "bytes": growth_in_subprocess(estimator, width, device),
    }


def time_worker(estimator: str, width: int, size: int, settings: BenchSettings) -> tuple[float, float]:
    """Seconds in which a worker evaluates so many perturbations, and in which it moves on: medians over rounds."""
    worker = TimedWorker(worker_cost.make_net(width, settings.device), estimator, size, settings.device)
    worker.generation()
    rounds: list[tuple[float, float]] = []
    while len(rounds) < settings.round_count(ROUNDS) and sum(map(sum, rounds)) < settings.time_limit(SECONDS):
        rounds.append(worker.generation())
    evaluate, move = (statistics.median(column) for column in zip(*rounds, strict=True))
    return evaluate, move


def growth_in_subprocess(estimator: str, width: int, device: str) -> int | None:
    """The growth of the peak in a process of its own, where it can be counted."""
    if device == "cpu" and not Path("/proc/self/clear_refs").exists():
        return None
    command = [sys.executable, "-m", "doxa_bench.worker_cost", estimator, str(width), device]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def fit_constants(result: dict[str, Any]) -> dict[str, float]:
    """The few numbers of the model: those of nets as the largest has them, those of crews by least squares."""
    fitted: dict[str, float] = {}
    for estimator in ESTIMATORS:
        rows = [row for row in result["nets"] if row["estimator"] == estimator]
        if not rows:
            continue
        last = max(rows, key=lambda row: row["weights"])
        fitted |= {f"{estimator}, {name}": last[name] for name in ("evaluate_ns", "move_ns", "once_ns")}
        if last["bytes"] is not None:
            fitted[f"{estimator}, bytes"] = last["bytes"] / last["weights"]
    if result["crews"]:
        (base, block, pair), errors = fit_leader_constants(result["crews"])
        fitted |= {"lead": base, "lead_block": block, "lead_block_worker": pair}
        fitted |= {f"{name}, error": error for name, error in zip(PER, errors, strict=True)}
    return fitted


def fit_leader_constants(rows: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Seconds of the leader, at rest, for each block, and for each block and worker, with their standard errors.

    By least squares, none of them below 0: the most negative is left out, and the rest are found again.
    """
    terms = torch.tensor([[1.0, r["parts"], r["parts"] * r["workers"]] for r in rows], dtype=torch.float64)
    seconds = torch.tensor([r["seconds"] for r in rows], dtype=torch.float64)
    relative = terms / seconds[:, None]  # relative errors count alike: the shortest are as telling as the longest
    coefficients, errors, used = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), [0, 1, 2]
    while used:
        used_terms = relative[:, used]
        fitted = torch.linalg.lstsq(used_terms, torch.ones_like(seconds)[:, None]).solution.flatten()
        if bool((fitted >= 0).all()):
            noise = (used_terms @ fitted - 1).square().sum() / max(1, len(rows) - len(used))
            coefficients[used] = fitted
            errors[used] = (noise * torch.linalg.inv(used_terms.T @ used_terms).diagonal()).sqrt()
            break
        used.pop(int(fitted.argmin()))
    return coefficients.tolist(), errors.tolist()


def model_generation(
    result: dict[str, Any], workers: int, weights: float, estimator: str = "weight space"
) -> dict[str, Any]:
    """A generation by arithmetic: a pair for each worker, 1000 perturbations at least, a block for each worker."""
    fitted = result["constants"]
    size, parts = max(MOST, 2 * workers), max(16, workers)
    evaluate = fitted[f"{estimator}, evaluate_ns"] * 1e-9 * -(-size // workers) * weights * BATCH
    once = fitted[f"{estimator}, once_ns"] * 1e-9 * weights
    move = once + fitted[f"{estimator}, move_ns"] * 1e-9 * size * weights
    shared = once + (move - once) / workers  # if each made the update of its share of the weights
    prediction: dict[str, Any] = {"perturbations": size, "evaluate": evaluate, "move": move, "shared": shared}
    if f"{estimator}, bytes" in fitted:
        prediction["memory"] = fitted[f"{estimator}, bytes"] * weights
    if "lead" in fitted:
        prediction["lead"] = (
            fitted["lead"] + fitted["lead_block"] * parts + fitted["lead_block_worker"] * parts * workers
        )
        message_bytes = result["bytes"]
        prediction["up"] = parts * (message_bytes["request"] + message_bytes["answer"]) + size * message_bytes["value"]
        prediction["down"] = workers * (parts * message_bytes["told_block"] + size * message_bytes["value"])
        prediction["sums"] = 2 * 4 * weights * parts  # of local perturbations
    return prediction


def show(result: dict[str, Any]) -> list[BenchTable]:
    nets = [
        (
            row["estimator"],
            f"{row['weights']:,}",
            f"{row['perturbations']:,}",
            f"{1e3 * row['evaluate_ns']:.1f}",
            f"{row['move_ns']:.2f}",
            f"{row['once_ns']:.1f}",
            format_number(None if row["bytes"] is None else row["bytes"] / row["weights"], ".0f"),
        )
        for row in result["nets"]
    ]
    headers = ("perturbations", "weights d", "N", "evaluate, ps each N d B")
    more = ("update, ns each N d", "and once each d", "memory, bytes a weight")
    tables = [BenchTable("A worker that evaluates all of a generation", (*headers, *more), nets)]
    fitted = result.get("constants", {})
    if result["crews"] and "lead" in fitted:
        leader_rows = [(str(r["workers"]), str(r["parts"]), f"{1e3 * r['seconds']:.2f}") for r in result["crews"]]
        fitted_text = ", ".join(
            f"{fitted[name]:.2g} ± {fitted[f'{name}, error']:.1g} s {per}" for name, per in PER.items()
        )
        notes = ["workers are a thread that answers for all at once, so that there can be many"]
        notes += [f"fitted: {fitted_text}"]
        leader_headers = ("workers", "blocks", "its own ms a generation")
        tables.append(BenchTable("A process that leads a pool", leader_headers, leader_rows, 2, notes))
    if all(f"{estimator}, move_ns" in result.get("constants", {}) for estimator in ESTIMATORS):
        tables += model_tables(result)
    return tables


def model_tables(result: dict[str, Any]) -> list[BenchTable]:
    """What generations would cost, in time and in bytes; beyond what was measured it is extrapolated, and marked."""
    largest = (
        max(row["weights"] for row in result["nets"]),
        max((row["workers"] for row in result["crews"]), default=1),
    )
    time_rows, byte_rows = [], []
    for workers, weights in MODELLED_CASES:
        weight_space, low_rank = (
            model_generation(result, workers, weights),
            model_generation(result, workers, weights, "low rank"),
        )
        workers_text, weights_text = (
            mark_extrapolated(f"{workers:,}", workers > largest[1]),
            mark_extrapolated(f"{weights / 1e6:,g} M", weights > largest[0]),
        )
        case = workers_text, weights_text
        parts = (
            weight_space["evaluate"],
            weight_space["move"],
            low_rank["evaluate"],
            low_rank["move"],
            weight_space["shared"],
            weight_space.get("lead"),
        )
        time_rows.append((*case, *map(format_seconds, parts)))
        byte_rows.append(
            (
                *case,
                f"{weight_space['perturbations']:,}",
                *(format_bytes(weight_space.get(name)) for name in ("up", "down", "sums", "memory")),
            )
        )
    headers = ("workers", "weights")
    notes = [f"{EXTRAPOLATED} extrapolated: measured were up to {largest[0]:,} weights and {largest[1]} workers"]
    parity_texts = (
        f"{parity(result, estimator):.0f} workers with {estimator} perturbations" for estimator in ESTIMATORS
    )
    notes.append(f"on {BATCH} rows the update takes longer than the evaluations from {', '.join(parity_texts)} on")
    time_headers = ("evaluate", "update", "evaluate, low rank", "update, low rank", "update, shared out", "leader")
    byte_headers = ("N", "received by the leader", "sent to all", "received, local", "memory of a worker")
    return [
        BenchTable("Time of a generation by the model", (*headers, *time_headers), time_rows, 0, notes),
        BenchTable("Bytes of a generation by the model", (*headers, *byte_headers), byte_rows, 0, notes[:1]),
    ]


def mark_extrapolated(text: str, beyond: bool) -> str:
    return f"{text} {EXTRAPOLATED}" if beyond else text


def parity(result: dict[str, Any], estimator: str) -> float:
    """The number of workers at which evaluating a share takes as long as making all perturbations again."""
    fitted = result["constants"]
    return float(fitted[f"{estimator}, evaluate_ns"] * BATCH / max(fitted[f"{estimator}, move_ns"], 1e-12))


def format_seconds(value: float | None) -> str:
    """Seconds to two digits, or hours where they are many."""
    if value is None:
        return "–"
    number, unit = (value, "s") if value < 3600 else (value / 3600, "h")
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.2g} {unit}"


def format_bytes(count: float | None) -> str:
    """Bytes to two digits, in thousands."""
    if count is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}" if count >= 100 else f"{count:.2g} {unit}"
        count /= 1000
    raise AssertionError
