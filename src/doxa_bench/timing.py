"""Times taken in turn, so that the machine's moods are shared; ratios are medians over rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch

FEWEST = 3  # rounds, however long they take
EVERY = 3  # steps between two of the plain net: near enough in time to feel the same machine
VISIT = 0.1  # seconds for which the plain step is repeated at most, before the next has its turn
MOST = 5  # repetitions in a visit

Step = Callable[[], object]
Clock = Callable[[], float]
Pair = tuple[float, float]  # seconds of the plain step, and of the one held against it


def seconds(step: Step, times: int, device: str = "cpu", clock: Clock = time.perf_counter) -> float:
    """Seconds a step, with the device's queue empty before and after."""
    wait_for_device(device)
    start = clock()
    for _ in range(times):
        step()
    wait_for_device(device)
    return (clock() - start) / times


def time_in_turn(
    base: Step,
    compared_steps: Mapping[str, Step],
    rounds: int,
    limit: float,
    device: str = "cpu",
    on_round: Callable[[int], None] = lambda done: None,
    clock: Clock = time.perf_counter,
) -> dict[str, list[Pair]]:
    """Every step in every round, each held against the plain step last taken; no round that would pass the limit."""
    start = clock()
    seconds(base, 2, device, clock)
    # Every step comes as often as the plain one, so that cold caches weigh alike on all.
    times = max(1, min(MOST, int(VISIT / max(seconds(base, 1, device, clock), 1e-9))))
    for step in compared_steps.values():
        seconds(step, min(times, 2), device, clock)
    pairs_by_step: dict[str, list[Pair]] = {name: [] for name in compared_steps}
    done, last_round_seconds, base_seconds = 0, 0.0, 0.0
    while done < rounds and (done < min(FEWEST, rounds) or clock() - start + last_round_seconds < limit):
        round_start = clock()
        for turn, (name, step) in enumerate(compared_steps.items()):
            if turn % EVERY == 0:
                base_seconds = seconds(base, times, device, clock)
            pairs_by_step[name].append((base_seconds, seconds(step, times, device, clock)))
        done, last_round_seconds = done + 1, clock() - round_start
        on_round(done)
    return pairs_by_step


def time_side_by_side(
    steps: Mapping[str, Step],
    rounds: int,
    limit: float,
    device: str = "cpu",
    on_round: Callable[[int], None] = lambda done: None,
    clock: Clock = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of every step in every round, one after the other; no round that would pass the limit."""
    start = clock()
    times = {}
    for name, step in steps.items():
        seconds(step, 1, device, clock)
        times[name] = max(1, min(MOST, int(VISIT / max(seconds(step, 1, device, clock), 1e-9))))
    seconds_by_step: dict[str, list[float]] = {name: [] for name in steps}
    done, last_round_seconds = 0, 0.0
    while done < rounds and (done < min(FEWEST, rounds) or clock() - start + last_round_seconds < limit):
        round_start = clock()
        for name, step in steps.items():
            seconds_by_step[name].append(seconds(step, times[name], device, clock))
        done, last_round_seconds = done + 1, clock() - round_start
        on_round(done)
    return seconds_by_step


def summarize_pairs(pairs: Sequence[Pair]) -> dict[str, float]:
    """The ratio's median and quartiles over rounds, and both times."""
    return {
        **ratio_quartiles([b / a for a, b in pairs]),
        "plain_ms": 1e3 * statistics.median(a for a, _ in pairs),
        "ms": 1e3 * statistics.median(b for _, b in pairs),
        "rounds": len(pairs),
    }


def ratio_quartiles(ratios: Sequence[float]) -> dict[str, float]:
    """Median and quartiles."""
    ordered = sorted(ratios)
    return {
        "ratio": statistics.median(ordered),
        "low": ordered[len(ordered) // 4],
        "high": ordered[3 * len(ordered) // 4],
    }


def wait_for_device(device: str) -> None:
    """Wait until the device's queue is empty."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
