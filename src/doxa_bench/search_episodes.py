"""Are policies found by the returns of episodes alone, and how long does it take?

No setting is given but the net and an end: each seed searches until 100 new episodes of the net in the middle reach
what gymnasium calls solved, by two standard errors. Whether it is solved is then asked again, of 100 other episodes
that nothing was chosen by. The defaults were found with other seeds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

import doxa
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, format_number, with_error

SEEDS = 5
EPISODES = 100
OTHER = 1_000_003  # the seed of the last episodes
COPIES, STEPS = 64, 200  # of environments that are timed


class SearchTask(NamedTuple):
    """An environment, a net for it, and when to give up."""

    inputs: int
    hidden: tuple[int, ...]
    outputs: int
    generations: int


TASKS = {
    "CartPole-v1": SearchTask(4, (32,), 2, 100),
    "LunarLander-v3": SearchTask(8, (64, 64), 4, 400),
}


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    seeds = settings.round_count(SEEDS)
    selected_tasks = {name: task for name, task in TASKS.items() if settings.wants(name)}
    import gymnasium

    result: dict[str, Any] = {
        "settings": {
            "gymnasium": gymnasium.__version__,
            "nets": {name: [task.inputs, *task.hidden, task.outputs] for name, task in selected_tasks.items()},
            "generations_at_most": {name: task.generations for name, task in selected_tasks.items()},
            "episodes": EPISODES,
        },
        "seeds": list(range(seeds)),
        "tasks": {name: {"seeds": []} for name in selected_tasks},
        "microseconds_a_step": {},
    }
    for name in selected_tasks:
        result["microseconds_a_step"][name] = time_environments(name)
        yield result
    for name, task in selected_tasks.items():
        for seed in range(seeds):
            settings.progress(f"{name}, seed {seed}")
            row = run_search(name, task, seed)
            result["tasks"][name]["seeds"].append(row)
            settings.say(f"{name}, seed {seed}: return {row['return']:.1f} after {row['seconds']:.0f} s")
            yield result


def run_search(name: str, task: SearchTask, seed: int) -> dict[str, Any]:
    """What one seed comes to, and the time from nothing to a policy."""
    torch.manual_seed(seed)
    start, cpu_start = time.perf_counter(), time.process_time()
    net = doxa.nets.mlp(task.inputs, task.hidden, task.outputs)
    policy = doxa.search.policy(name, net, seed=seed, generations=task.generations, progress=False)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    returns = policy.play(EPISODES, seed=OTHER)
    mean = float(returns.mean())
    return {
        "seed": seed,
        "return": mean,
        "se": float(returns.std()) / math.sqrt(EPISODES),
        "threshold": policy.env_spec.threshold,
        "solved": mean >= float(policy.env_spec.threshold or math.inf),
        "ended_by_trial": policy.solved,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "generations": len(policy.trajectory),
        "steps": sum(row["steps"] for row in policy.trajectory),
    }


def time_environments(name: str) -> dict[str, float]:
    """What a step of one environment costs: in a list, as gymnasium's list of them, and as its own vector, if any."""
    import gymnasium

    env_spec = doxa.search.episodes.environments.EnvironmentSpec(name)
    ways: dict[str, Any] = {"list": env_spec.sequential, "gymnasium's list": _vector_environment(name, "sync")}
    if gymnasium.spec(name).vector_entry_point is not None:
        ways["its own vector"] = _vector_environment(name, "vector_entry_point")
    step_microseconds = {}
    for way, stage in ways.items():
        stage.reset([*range(COPIES)])
        rows, elapsed, steps = np.arange(COPIES), 0.0, 0
        while steps < STEPS * COPIES:
            start = time.perf_counter()
            _, _, over = stage.step(rows, np.zeros(len(rows), dtype=np.int64))
            elapsed, steps = elapsed + time.perf_counter() - start, steps + len(rows)
            rows = rows[~over]
            if not len(rows):  # times are of steps alone
                stage.reset([*range(COPIES)])
                rows = np.arange(COPIES)
        step_microseconds[way] = 1e6 * elapsed / steps
    return step_microseconds


def _vector_environment(name: str, way: str) -> Any:
    import gymnasium

    return doxa.search.episodes.environments.VectorizedEnvironments(
        gymnasium.make_vec(name, COPIES, vectorization_mode=way)
    )


def show(result: dict[str, Any]) -> list[BenchTable]:
    rows: list[tuple[str, ...]] = []
    notes = []
    for name, task in result["tasks"].items():
        for row in task["seeds"]:
            mean = with_error({"mean": row["return"], "se": row["se"]})
            counts = (
                f"{row['seconds']:.0f}",
                f"{row['cpu_seconds']:.0f}",
                str(row["generations"]),
                f"{row['steps'] / 1e6:.2f}",
            )
            rows.append((name, str(row["seed"]), mean, "yes" if row["solved"] else "no", *counts))
        if task["seeds"]:
            solved, seed_count = sum(row["solved"] for row in task["seeds"]), len(task["seeds"])
            slowest, threshold = max(row["seconds"] for row in task["seeds"]), task["seeds"][0]["threshold"]
            notes.append(
                f"{name}: {solved} of {seed_count} seeds reach {threshold:g}; the slowest took {slowest:.0f} s"
            )
    headers = ("environment", "seed", f"return of {result['settings']['episodes']} episodes", "solved", "s")
    searches = BenchTable("Searches", (*headers, "s of CPU", "generations", "million steps"), rows, notes=notes)
    ways = ("list", "gymnasium's list", "its own vector")
    timed = [
        (name, *(format_number(microseconds.get(way), ".1f") for way in ways))
        for name, microseconds in result["microseconds_a_step"].items()
    ]
    return [searches, BenchTable("A step of one environment, µs", ("environment", *ways), timed)]
