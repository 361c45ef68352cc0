"""What does one training step of a mean-field Gaussian belief cost, in Doxa and in other libraries?

Every figure is a ratio to the same plain net with fused Adam. For each kind of net, all steps are taken in turn, many
rounds, in one process with two threads; each ratio is the median over rounds. Slow nets get fewer rounds, so that a
full run on two cores takes some ten minutes. It needs the environment of peers.txt.

    PYTHONPATH=src ENV/bin/python -m doxa_bench.against_rivals [--only lenet5] [--rounds 31] [--samples 2]
        [--device cuda] [--out results/bench/against_rivals.json]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

import torch
from torch import Tensor

import doxa
from doxa.results import stamp
from doxa_bench.rivals import KINDS, KL, NOISES, RIVALS, Step, quiet, version
from doxa_bench.step_cost import BATCH, GAUSSIAN, SIZE, believed, plain

# A kind's rounds end when the next would take it past so many seconds.
SECONDS = {"mlp1200": 110.0, "mlp400": 40.0, "lenet5": 120.0, "vgg": 300.0}
FEWEST = 3
EVERY = 3  # steps between two of the plain net: near enough in time to feel the same machine
VISIT = 0.1  # seconds for which the plain step is repeated at most, before the next has its turn
Case = tuple[str, str, str]  # kind, noise, library
Figures = dict[str, dict[str, float]]


def doxa_step(kind: str, x: Tensor, y: Tensor, noise: str, samples: int) -> Step:
    """Doxa's step: the only place that knows how step_cost.py builds it."""
    learner = doxa.learners.variational(GAUSSIAN, doxa.noise.TABLE[noise], samples=samples)
    return believed(KINDS[kind][0]().to(x.device), x, y, learner)


def plain_step(kind: str, x: Tensor, y: Tensor) -> Step:
    return plain(KINDS[kind][0]().to(x.device), x, y)


def data(kind: str, device: torch.device) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(BATCH, *KINDS[kind][1]).to(device), torch.randint(0, 10, (BATCH,)).to(device)


def steps(
    kind: str, device: torch.device, samples: int, only: str
) -> tuple[Step | None, dict[Case, Step], dict[Case, str]]:
    """The plain step, those of every library, and why others are missing."""
    x, y = data(kind, device)
    found: dict[Case, Step] = {}
    missing: dict[Case, str] = {}
    for noise in NOISES:
        for library in ("doxa", *RIVALS):
            case = (kind, noise, library)
            if only not in label(case):
                continue
            if library == "doxa":
                found[case] = doxa_step(kind, x, y, noise, samples)
                continue
            step, reason = RIVALS[library](kind, x, y, SIZE, noise, samples)
            if step is None:
                missing[case] = reason
            else:
                found[case] = step
    return (plain_step(kind, x, y) if found else None), found, missing


def label(case: Case) -> str:
    kind, noise, library = case
    return f"{kind} {noise} gaussian, {library}"


def seconds(step: Step, times: int, device: torch.device) -> float:
    """Seconds a step, with the device's queue empty before and after."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    for _ in range(times):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - start) / times


def measure(base: Step, found: dict[Case, Step], rounds: int, limit: float, device: torch.device) -> Figures:
    """Figures of every step, all of them measured in every round; each is held against the plain step last taken."""
    start = time.perf_counter()
    seconds(base, 2, device)
    # Every step comes as often as the plain one, so that cold caches weigh alike on all.
    times = max(1, min(5, int(VISIT / seconds(base, 1, device))))
    for step in found.values():
        seconds(step, min(times, 2), device)
    taken: dict[str, list[tuple[float, float]]] = {label(case): [] for case in found}
    done, latest = 0, 0.0
    while done < rounds and (done < FEWEST or time.perf_counter() - start + latest < limit):
        begun = time.perf_counter()
        for turn, (case, step) in enumerate(found.items()):
            if turn % EVERY == 0:
                ground = seconds(base, times, device)
            taken[label(case)].append((ground, seconds(step, times, device)))
        done, latest = done + 1, time.perf_counter() - begun
    return {name: figures(pairs) for name, pairs in taken.items()}


def figures(pairs: list[tuple[float, float]]) -> dict[str, float]:
    ratios = sorted(b / a for a, b in pairs)
    return {
        "ratio": statistics.median(ratios),
        "low": ratios[len(ratios) // 4],
        "high": ratios[3 * len(ratios) // 4],
        "plain_ms": 1e3 * statistics.median(a for a, _ in pairs),
        "ms": 1e3 * statistics.median(b for _, b in pairs),
        "rounds": len(ratios),
    }


def table(measured: Figures) -> str:
    """Ratios, a row for each library and noise, a column for each kind."""
    rows = [f"{'':34s}" + "".join(f"{kind:>9s}" for kind in KINDS)]
    for noise in NOISES:
        for library in ("doxa", *RIVALS):
            ratios = [measured.get(label((kind, noise, library)), {}).get("ratio") for kind in KINDS]
            if any(ratios):
                cells = "".join(f"{r:9.2f}" if r else f"{'–':>9s}" for r in ratios)
                rows.append(f"{noise:8s}  {library:24s}{cells}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31, help="at most this many rounds for each kind of net")
    parser.add_argument("--samples", type=int, choices=(1, 2), default=1, help="draws of the weights in a step")
    parser.add_argument("--only", default="", help="only the cases whose name holds this, e.g. 'vgg local'")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(2)
    device = torch.device(args.device)
    start = time.perf_counter()
    measured: Figures = {}
    absent: dict[str, str] = {}
    with quiet():
        for kind in KINDS:
            base, found, missing = steps(kind, device, args.samples, args.only)
            absent |= {label(case): reason for case, reason in missing.items()}
            if base is None:
                continue
            results = measure(base, found, args.rounds, SECONDS[kind], device)
            for name, r in results.items():
                print(
                    f"{name:48s} {r['ratio']:6.2f}  [{r['low']:.2f}, {r['high']:.2f}]  "
                    f"{r['plain_ms']:.1f} -> {r['ms']:.1f} ms, {r['rounds']} rounds",
                    flush=True,
                )
            measured |= results
    for name, reason in absent.items():
        if not reason.startswith("has no"):
            print(f"{name:48s} {reason}")
    print(f"\nTimes the plain net's step; {BATCH} rows, {args.samples} draw(s), {device}\n{table(measured)}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        settings = {
            "batch": BATCH,
            "rows": SIZE,
            "rounds": args.rounds,
            "samples": args.samples,
            "threads": 2,
            "device": str(device),
            "cpu": platform.processor() or platform.machine(),
        }
        of_rivals = {name: {"version": version(name), "kl": KL[name]} for name in RIVALS}
        written = {**stamp(settings, [0], start), "steps": measured, "missing": absent, "rivals": of_rivals}
        args.out.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
