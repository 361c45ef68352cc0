"""What does one training step of a belief cost, as a ratio to the same plain net with fused Adam?

Both steps are taken in turn, many rounds, in one process with two threads; each ratio is the median over rounds. Peak
memory is measured in processes of their own, as the growth of the peak resident size from before the net exists.

    python -m doxa_bench.step_cost [--rounds 15] [--out results/bench/step_cost.json]
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import doxa
from doxa.contracts import Batch, Now
from doxa.feed import InMemory
from doxa.fit import Member, keys, pose
from doxa.philox import Stream
from doxa.randomness import seed_of
from doxa.results import stamp

SIZE = 60_000
BATCH = 128


def plain(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    optimiser = torch.optim.Adam(net.parameters(), 1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimiser.step()

    return step


def believed(
    net: nn.Module, x: torch.Tensor, y: torch.Tensor, learner: doxa.contracts.Learner, nets: int = 1
) -> Callable[[], None]:
    """The training step of a belief, or of several as one program."""
    members = [Member(net, learner, seed) for seed in range(nets)]
    problem = pose(members, InMemory(x, y, BATCH), doxa.likelihoods.categorical(), None, x.device, None)
    training = learner.start(problem, [learner] * nets)
    optimiser = doxa.optimisers.adam().start(training)
    batch = Batch(torch.stack([x] * nets), torch.stack([y] * nets))
    words = torch.tensor([seed_of(key) for key in keys(members)], device=x.device)
    weights, rates = torch.full((nets,), 1 / SIZE, device=x.device), torch.full((nets,), 1e-3, device=x.device)
    done = 0

    def step() -> None:
        nonlocal done
        now = Now(Stream(words, done), weights)
        training.step(batch, now)
        optimiser.step(now, rates, optimiser.corrections(done + 1))
        done += 1

    return step


GAUSSIAN = doxa.priors.gaussian(1.0)
MIXTURE = doxa.priors.scale_mixture(0.5, 1.0, math.exp(-7))


def mlp(width: int) -> Callable[[], nn.Module]:
    return lambda: doxa.nets.mlp(784, (width, width), 10)


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], doxa.contracts.Learner]] = {
    "mlp1200 shared gaussian": (mlp(1200), (784,), doxa.learners.variational(GAUSSIAN)),
    "mlp1200 shared scale_mixture": (mlp(1200), (784,), doxa.learners.variational(MIXTURE)),
    "mlp1200 shared gaussian, two samples": (mlp(1200), (784,), doxa.learners.variational(GAUSSIAN, samples=2)),
    "mlp1200 local gaussian": (mlp(1200), (784,), doxa.learners.variational(GAUSSIAN, doxa.noise.local)),
    "mlp1200 flipout gaussian": (mlp(1200), (784,), doxa.learners.variational(GAUSSIAN, doxa.noise.flipout)),
    "mlp400 shared gaussian": (mlp(400), (784,), doxa.learners.variational(GAUSSIAN)),
    "mlp1200 dropout": (mlp(1200), (784,), doxa.learners.dropout(0.5)),
    "mlp1200 point": (mlp(1200), (784,), doxa.learners.point()),
    "lenet5 shared gaussian": (doxa.nets.lenet5, (1, 28, 28), doxa.learners.variational(GAUSSIAN)),
    "lenet5 local gaussian": (doxa.nets.lenet5, (1, 28, 28), doxa.learners.variational(GAUSSIAN, doxa.noise.local)),
    "lenet5 flipout gaussian": (doxa.nets.lenet5, (1, 28, 28), doxa.learners.variational(GAUSSIAN, doxa.noise.flipout)),
}


MEMORY = ("mlp1200 shared gaussian", "mlp1200 shared scale_mixture")


def data(shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(BATCH, *shape), torch.randint(0, 10, (BATCH,))


def seconds(step: Callable[[], None], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        step()
    return (time.perf_counter() - start) / times


def ratio(name: str, rounds: int) -> dict[str, float]:
    make, shape, learner = CASES[name]
    x, y = data(shape)
    base, ours = plain(make(), x, y), believed(make(), x, y, learner)
    for step in (base, ours):
        seconds(step, 3)
    pairs = [(seconds(base, 5), seconds(ours, 5)) for _ in range(rounds)]
    ratios = sorted(b / a for a, b in pairs)
    return {
        "ratio": statistics.median(ratios),
        "low": ratios[len(ratios) // 4],
        "high": ratios[3 * len(ratios) // 4],
        "plain_ms": 1e3 * statistics.median(a for a, _ in pairs),
        "ms": 1e3 * statistics.median(b for _, b in pairs),
    }


def growth(name: str, kind: str) -> int:
    """Growth of the peak resident size in bytes, in this process."""
    make, shape, learner = CASES[name]
    x, y = data(shape)
    warm = plain(nn.Linear(shape[0], 10), x, y)
    seconds(warm, 3)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = resident("VmRSS")
    step = plain(make(), x, y) if kind == "plain" else believed(make(), x, y, learner)
    seconds(step, 5)
    return resident("VmHWM") - before


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def memory(name: str) -> dict[str, float]:
    found = {}
    for kind in ("plain", "belief"):
        command = [sys.executable, "-m", "doxa_bench.step_cost", "--growth", name, kind]
        found[kind] = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {"ratio": found["belief"] / found["plain"], **{f"{k}_mb": v / 1e6 for k, v in found.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="only the cases whose name holds this")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--growth", nargs=2)
    args = parser.parse_args()
    torch.set_num_threads(2)
    if args.growth:
        print(growth(*args.growth))
        return
    start = time.perf_counter()
    found: dict[str, dict[str, float]] = {}
    for name in CASES:
        if args.only in name:
            found[name] = ratio(name, args.rounds)
            r = found[name]
            print(
                f"{name:40s} {r['ratio']:5.2f}  [{r['low']:.2f}, {r['high']:.2f}]  "
                f"{r['plain_ms']:.1f} -> {r['ms']:.1f} ms",
                flush=True,
            )
    peak = {name: memory(name) for name in MEMORY if args.only in name}
    for name, r in peak.items():
        print(f"{name:40s} peak memory {r['ratio']:.2f} times  ({r['plain_mb']:.0f} -> {r['belief_mb']:.0f} MB)")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        settings = {
            "batch": BATCH,
            "rounds": args.rounds,
            "threads": 2,
            "cpu": platform.processor() or platform.machine(),
        }
        args.out.write_text(
            json.dumps({**stamp(settings, [0], start), "steps": found, "memory": peak}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
