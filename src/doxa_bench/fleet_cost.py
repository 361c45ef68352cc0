"""What does a fleet gain over its members one after the other?

K nets of one architecture, a full training step of each on 128 rows: all as one program, one by one, and as K plain
nets one by one, in turn, many rounds, in one process; gain and cost are medians over rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

import doxa
from doxa_bench.net_kinds import BATCH, CLASSES
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, format_number, format_quartiles
from doxa_bench.timing import ratio_quartiles, seconds
from doxa_bench.trainables import GAUSSIAN, BeliefTrainer, plain_model

ROUNDS = 15
NOISES = ("shared", "local", "flipout")
CASES = {
    "64-100-100-10, 16 nets": (64, 100, 16),
    "784-100-100-10, 16 nets": (784, 100, 16),
    "784-400-400-10, 8 nets": (784, 400, 8),
}
ALONE = (
    "No other library here trains several nets as one program: K of its nets cost K of its steps, which step_cost has."
)


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    rounds = settings.round_count(ROUNDS)
    result: dict[str, Any] = {"settings": {"batch": BATCH, "rounds": rounds}, "fleets": {}}
    for name in CASES:
        for noise in NOISES:
            case = f"{name}, {noise}"
            if settings.wants(case):
                result["fleets"][case] = measure_gain(name, noise, rounds, settings.device)
                settings.say(f"{case}: {result['fleets'][case]['gain']:.2f} times faster")
                yield result


def measure_gain(name: str, noise: str, rounds: int, device: str) -> dict[str, float]:
    inputs, width, nets = CASES[name]
    torch.manual_seed(0)
    net = doxa.nets.mlp(inputs, (width, width), CLASSES).to(device)
    x, y = torch.randn(BATCH, inputs, device=device), torch.randint(0, CLASSES, (BATCH,), device=device)
    learner = doxa.learners.variational(GAUSSIAN, doxa.noise.TABLE[noise])
    fleet, single = BeliefTrainer(net, (x, y), learner, nets=nets), BeliefTrainer(net, (x, y), learner)
    fleet_step, single_step = (partial(b.step, b.batch(x, y)) for b in (fleet, single))
    plain_step = partial(plain_model(net).step, x, y)
    for step in (fleet_step, single_step, plain_step):
        seconds(step, 3, device)
    round_seconds = [
        (
            seconds(fleet_step, 5, device),
            nets * seconds(single_step, 10, device),
            nets * seconds(plain_step, 10, device),
        )
        for _ in range(rounds)
    ]
    gains, costs = (
        ratio_quartiles([b / a for a, b, _ in round_seconds]),
        ratio_quartiles([a / c for a, _, c in round_seconds]),
    )
    return {
        "gain": gains["ratio"],
        "low": gains["low"],
        "high": gains["high"],
        "together_ms": 1e3 * statistics.median(a for a, _, _ in round_seconds),
        "one_by_one_ms": 1e3 * statistics.median(b for _, b, _ in round_seconds),
        "plain_ms": 1e3 * statistics.median(c for _, _, c in round_seconds),
        "ratio": costs["ratio"],
    }


def show(result: dict[str, Any]) -> list[BenchTable]:
    rows = []
    for name, r in result["fleets"].items():
        nets, _, noise = name.rpartition(", ")
        numbers = (
            f"{r['one_by_one_ms']:.1f}",
            f"{r['together_ms']:.1f}",
            f"{r['gain']:.2f}",
            format_quartiles(r),
        )
        rows.append((nets, noise, *numbers, format_number(r.get("plain_ms"), ".1f"), format_number(r.get("ratio"))))
    headers = (
        *("fleet", "noise", "one by one, ms", "together, ms", "times faster", "spread"),
        *("plain nets one by one, ms", "together, times those"),
    )
    return [BenchTable("A step of every net of a fleet", headers, rows, 2, (ALONE,))]
