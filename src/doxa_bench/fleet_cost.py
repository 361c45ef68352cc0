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
from doxa_bench.kinds import BATCH, CLASSES
from doxa_bench.settings import Settings
from doxa_bench.steps import GAUSSIAN, Believed, plain
from doxa_bench.tables import Table, number, spread
from doxa_bench.timing import ratio, seconds

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


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    rounds = settings.turns(ROUNDS)
    found: dict[str, Any] = {"settings": {"batch": BATCH, "rounds": rounds}, "fleets": {}}
    for name in CASES:
        for noise in NOISES:
            case = f"{name}, {noise}"
            if settings.wants(case):
                found["fleets"][case] = gain(name, noise, rounds, settings.device)
                settings.say(f"{case}: {found['fleets'][case]['gain']:.2f} times faster")
                yield found


def gain(name: str, noise: str, rounds: int, device: str) -> dict[str, float]:
    inputs, width, nets = CASES[name]
    torch.manual_seed(0)
    net = doxa.nets.mlp(inputs, (width, width), CLASSES).to(device)
    x, y = torch.randn(BATCH, inputs, device=device), torch.randint(0, CLASSES, (BATCH,), device=device)
    learner = doxa.learners.variational(GAUSSIAN, doxa.noise.TABLE[noise])
    fleet, single = Believed(net, (x, y), learner, nets=nets), Believed(net, (x, y), learner)
    together, alone = (partial(b.step, b.batch(x, y)) for b in (fleet, single))
    base = partial(plain(net).step, x, y)
    for step in (together, alone, base):
        seconds(step, 3, device)
    taken = [
        (seconds(together, 5, device), nets * seconds(alone, 10, device), nets * seconds(base, 10, device))
        for _ in range(rounds)
    ]
    gains, costs = ratio([b / a for a, b, _ in taken]), ratio([a / c for a, _, c in taken])
    return {
        "gain": gains["ratio"],
        "low": gains["low"],
        "high": gains["high"],
        "together_ms": 1e3 * statistics.median(a for a, _, _ in taken),
        "one_by_one_ms": 1e3 * statistics.median(b for _, b, _ in taken),
        "plain_ms": 1e3 * statistics.median(c for _, _, c in taken),
        "ratio": costs["ratio"],
    }


def show(found: dict[str, Any]) -> list[Table]:
    rows = []
    for name, r in found["fleets"].items():
        nets, _, noise = name.rpartition(", ")
        numbers = f"{r['one_by_one_ms']:.1f}", f"{r['together_ms']:.1f}", f"{r['gain']:.2f}", spread(r)
        rows.append((nets, noise, *numbers, number(r.get("plain_ms"), ".1f"), number(r.get("ratio"))))
    heads = (
        *("fleet", "noise", "one by one, ms", "together, ms", "times faster", "spread"),
        *("plain nets one by one, ms", "together, times those"),
    )
    return [Table("A step of every net of a fleet", heads, rows, 2, (ALONE,))]
