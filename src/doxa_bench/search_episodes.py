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
from doxa_bench.settings import Settings
from doxa_bench.tables import Table, number, with_error

SEEDS = 5
EPISODES = 100
OTHER = 1_000_003  # the seed of the last episodes
COPIES, STEPS = 64, 200  # of environments that are timed


class Task(NamedTuple):
    """An environment, a net for it, and when to give up."""

    inputs: int
    hidden: tuple[int, ...]
    outputs: int
    generations: int


TASKS = {
    "CartPole-v1": Task(4, (32,), 2, 100),
    "LunarLander-v3": Task(8, (64, 64), 4, 400),
}


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    seeds = settings.turns(SEEDS)
    wanted = {name: task for name, task in TASKS.items() if settings.wants(name)}
    import gymnasium

    found: dict[str, Any] = {
        "settings": {
            "gymnasium": gymnasium.__version__,
            "nets": {name: [task.inputs, *task.hidden, task.outputs] for name, task in wanted.items()},
            "generations_at_most": {name: task.generations for name, task in wanted.items()},
            "episodes": EPISODES,
        },
        "seeds": list(range(seeds)),
        "tasks": {name: {"seeds": []} for name in wanted},
        "microseconds_a_step": {},
    }
    for name in wanted:
        found["microseconds_a_step"][name] = engines(name)
        yield found
    for name, task in wanted.items():
        for seed in range(seeds):
            settings.progress(f"{name}, seed {seed}")
            row = searched(name, task, seed)
            found["tasks"][name]["seeds"].append(row)
            settings.say(f"{name}, seed {seed}: return {row['return']:.1f} after {row['seconds']:.0f} s")
            yield found


def searched(name: str, task: Task, seed: int) -> dict[str, Any]:
    """What one seed comes to, and the time from nothing to a policy."""
    torch.manual_seed(seed)
    start, own_start = time.perf_counter(), time.process_time()
    net = doxa.nets.mlp(task.inputs, task.hidden, task.outputs)
    policy = doxa.search.policy(name, net, seed=seed, generations=task.generations, progress=False)
    seconds, own = time.perf_counter() - start, time.process_time() - own_start
    returns = policy.play(EPISODES, seed=OTHER)
    mean = float(returns.mean())
    return {
        "seed": seed,
        "return": mean,
        "se": float(returns.std()) / math.sqrt(EPISODES),
        "threshold": policy.scenery.threshold,
        "solved": mean >= float(policy.scenery.threshold or math.inf),
        "ended_by_trial": policy.solved,
        "seconds": seconds,
        "cpu_seconds": own,
        "generations": len(policy.trajectory),
        "steps": sum(row["steps"] for row in policy.trajectory),
    }


def engines(name: str) -> dict[str, float]:
    """What a step of one environment costs: in a list, as gymnasium's list of them, and as its own vector, if any."""
    import gymnasium

    scenery = doxa.search.episodes.stage.Scenery(name)
    ways: dict[str, Any] = {"list": scenery.apart, "gymnasium's list": _vector(name, "sync")}
    if gymnasium.spec(name).vector_entry_point is not None:
        ways["its own vector"] = _vector(name, "vector_entry_point")
    found = {}
    for way, stage in ways.items():
        stage.reset([*range(COPIES)])
        rows, taken, steps = np.arange(COPIES), 0.0, 0
        while steps < STEPS * COPIES:
            start = time.perf_counter()
            _, _, over = stage.step(rows, np.zeros(len(rows), dtype=np.int64))
            taken, steps = taken + time.perf_counter() - start, steps + len(rows)
            rows = rows[~over]
            if not len(rows):  # times are of steps alone
                stage.reset([*range(COPIES)])
                rows = np.arange(COPIES)
        found[way] = 1e6 * taken / steps
    return found


def _vector(name: str, way: str) -> Any:
    import gymnasium

    return doxa.search.episodes.stage.Together(gymnasium.make_vec(name, COPIES, vectorization_mode=way))


def show(found: dict[str, Any]) -> list[Table]:
    rows: list[tuple[str, ...]] = []
    notes = []
    for name, task in found["tasks"].items():
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
            solved, many = sum(row["solved"] for row in task["seeds"]), len(task["seeds"])
            slowest, threshold = max(row["seconds"] for row in task["seeds"]), task["seeds"][0]["threshold"]
            notes.append(f"{name}: {solved} of {many} seeds reach {threshold:g}; the slowest took {slowest:.0f} s")
    heads = ("environment", "seed", f"return of {found['settings']['episodes']} episodes", "solved", "s")
    searches = Table("Searches", (*heads, "s of CPU", "generations", "million steps"), rows, notes=notes)
    ways = ("list", "gymnasium's list", "its own vector")
    timed = [
        (name, *(number(own.get(way), ".1f") for way in ways)) for name, own in found["microseconds_a_step"].items()
    ]
    return [searches, Table("A step of one environment, µs", ("environment", *ways), timed)]
