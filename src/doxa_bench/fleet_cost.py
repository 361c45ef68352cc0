"""What does a fleet gain over its members one after the other?

K nets of one architecture, a full training step of each: all as one program, and one by one, in turn, many rounds, in
one process; the gain is the median over rounds of the ratio of the two.

    python -m doxa_bench.fleet_cost [--rounds 15] [--device cpu] [--out results/bench/fleet_cost.json]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

import doxa
from doxa.results import stamp
from doxa_bench.step_cost import BATCH, believed

NOISES = ("shared", "local", "flipout")
CASES = {
    "64-100-100-10, 16 nets": (64, 100, 16),
    "784-100-100-10, 16 nets": (784, 100, 16),
    "784-400-400-10, 8 nets": (784, 400, 8),
}


def stepping(inputs: int, width: int, nets: int, noise: str, device: str) -> Callable[[], None]:
    """One training step of so many nets as one program."""
    torch.manual_seed(0)
    net = doxa.nets.mlp(inputs, (width, width), 10).to(device)
    x, y = torch.randn(BATCH, inputs, device=device), torch.randint(0, 10, (BATCH,), device=device)
    return believed(net, x, y, doxa.learners.variational(doxa.priors.gaussian(1.0), doxa.noise.TABLE[noise]), nets)


def seconds(step: Callable[[], None], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def gain(name: str, noise: str, rounds: int, device: str) -> dict[str, float]:
    inputs, width, nets = CASES[name]
    together, alone = (stepping(inputs, width, k, noise, device) for k in (nets, 1))
    for step in (together, alone):
        seconds(step, 3)
    pairs = [(seconds(together, 5), nets * seconds(alone, 10)) for _ in range(rounds)]
    ratios = sorted(b / a for a, b in pairs)
    return {
        "gain": statistics.median(ratios),
        "low": ratios[len(ratios) // 4],
        "high": ratios[3 * len(ratios) // 4],
        "together_ms": 1e3 * statistics.median(a for a, _ in pairs),
        "one_by_one_ms": 1e3 * statistics.median(b for _, b in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(2)
    start = time.perf_counter()
    found = {}
    for name in CASES:
        for noise in NOISES:
            found[f"{name}, {noise}"] = r = gain(name, noise, args.rounds, args.device)
            print(
                f"{name}, {noise:8s} {r['gain']:5.2f} times faster  [{r['low']:.2f}, {r['high']:.2f}]  "
                f"{r['one_by_one_ms']:.1f} -> {r['together_ms']:.1f} ms",
                flush=True,
            )
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        settings = {"batch": BATCH, "rounds": args.rounds, "threads": 2, "device": args.device}
        settings["cpu"] = platform.processor() or platform.machine()
        args.out.write_text(json.dumps({**stamp(settings, [0], start), "fleets": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
