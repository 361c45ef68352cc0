"""How do time and memory grow with width, nets and samples?

A training step of 784-w-w-10 on batches of 128 rows, Gaussian prior, Doxa's Adam, one thing varied at a time: the width
w, the K nets of a fleet, the S samples of a step. K nets that step once are K steps. The plain net of the same width
steps in turn with the belief, in the same rounds; a ratio is the median over rounds. On a CPU steps run as they are
written, and peak memory is measured in processes of their own; on a GPU steps are captured, without torch.compile, and
peak memory is that of the allocator.
"""

from __future__ import annotations

import gc
import json
import platform
import resource
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

import doxa
from doxa.engine.contracts import Learner
from doxa_bench import captured_cost, step_parts, timing, trainables
from doxa_bench.net_kinds import BATCH, random_rows
from doxa_bench.peak_memory import resident_bytes
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable

INPUTS, THREADS = 784, 2
ROUNDS = 5
Step = Callable[[], object]
BenchResult = dict[str, Any]
KINDS = ("plain", "belief")


@dataclass(frozen=True)
class WorkloadPoint:
    """How much work: the width of the net, the nets of a fleet, the samples of a step, and the noise."""

    width: int
    nets: int = 1
    samples: int = 1
    noise: str = "shared"

    def net(self) -> nn.Module:
        torch.manual_seed(0)
        return doxa.nets.mlp(INPUTS, (self.width, self.width), 10)

    def learner(self) -> Learner:
        return doxa.learners.variational(doxa.priors.gaussian(1.0), doxa.noise.TABLE[self.noise], self.samples)

    @property
    def weights(self) -> int:
        """Of one net."""
        return (INPUTS + 1) * self.width + (self.width + 1) * self.width + (self.width + 1) * 10


WIDTHS, NETS, SAMPLES = (100, 200, 400, 800, 1200, 2000, 2800, 4000), (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16, 32)
POINTS = tuple(
    dict.fromkeys(  # sweeps meet where K = S = 1: those points are measured once
        [
            *(WorkloadPoint(w, noise=noise) for noise in ("shared", "local") for w in WIDTHS),
            *(WorkloadPoint(w, nets=k) for w in (100, 400) for k in NETS),
            *(WorkloadPoint(w, samples=s) for w in (400, 1200) for s in SAMPLES),
        ]
    )
)


class Machine(Protocol):
    """Where steps are taken: makes them, times them, and weighs them."""

    share: float  # seconds of a round for each of the two steps
    max_steps: int  # steps in a row

    def plain_step(self, width: int) -> Step: ...

    def belief_step(self, point: WorkloadPoint) -> Step: ...

    def seconds(self, step: Step, times: int) -> float: ...

    def profile(self, step: Step, times: int) -> BenchResult:
        """What explains the time of a step: "parts", the seconds that go to each, and what else the machine tells."""
        ...

    def memory(self, point: WorkloadPoint, kind: str) -> int:
        """Growth of the peak by a plain net or a belief at work, in bytes."""
        ...

    def settings(self) -> dict[str, Any]: ...


class Cpu:
    share, max_steps = 0.3, 200

    def __init__(self) -> None:
        torch.set_num_threads(THREADS)
        self.x, self.y = random_rows("mlp1200")

    def plain_step(self, width: int) -> Step:
        return partial(trainables.plain_model(WorkloadPoint(width).net()).step, self.x, self.y)

    def belief_step(self, point: WorkloadPoint) -> Step:
        belief = trainables.BeliefTrainer(point.net(), (self.x, self.y), point.learner(), nets=point.nets)
        return partial(belief.step, belief.batch(self.x, self.y))

    def seconds(self, step: Step, times: int) -> float:
        return timing.seconds(step, times)

    def profile(self, step: Step, times: int) -> BenchResult:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        seconds_by_part = step_parts.time_eager_parts(step, times)
        # Pages that the system hands out anew, zeroed: the price of memory given back after every step.
        faults = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / times
        return {"parts": seconds_by_part, "page_faults": faults}

    def memory(self, point: WorkloadPoint, kind: str) -> int:
        command = [sys.executable, "-m", "doxa_bench.scaling", json.dumps(asdict(point)), kind]
        return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)

    def settings(self) -> dict[str, Any]:
        return {"threads": THREADS, "cpu": processor(), "caches": caches()}


class Cuda:
    share, max_steps = 0.03, 100

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        torch.set_float32_matmul_precision("high")
        # Batches enough for a row of steps, and none of another length, which would be a recording of its own.
        self.x, self.y = captured_cost.random_data((INPUTS,), rows=self.max_steps * BATCH)

    def plain_step(self, width: int) -> Step:
        return captured_cost.plain_step(WorkloadPoint(width).net(), self.x, self.y, compiled=False)

    def belief_step(self, point: WorkloadPoint) -> Step:
        net = point.net().cuda()
        return captured_cost.belief_step(net, self.x, self.y, [point.learner()] * point.nets, compiled=False)

    def seconds(self, step: Step, times: int) -> float:
        return 1e-6 * captured_cost.step_microseconds(step, times)

    def profile(self, step: Step, times: int) -> BenchResult:
        return {"parts": step_parts.time_captured_parts(step, min(times, 20))}

    def memory(self, point: WorkloadPoint, kind: str) -> int:
        gc.collect()
        torch.cuda.synchronize()
        torch._C._cuda_clearCublasWorkspaces()  # each stream has its own, or the first to come would pay for all
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step = self.plain_step(point.width) if kind == "plain" else self.belief_step(point)
        self.seconds(step, 2)
        return torch.cuda.max_memory_allocated() - before

    def settings(self) -> dict[str, Any]:
        return {"gpu": torch.cuda.get_device_name(), "matmul": "tf32", "compiled": False}


MACHINES: Mapping[str, Callable[[], Machine]] = {"cpu": Cpu, "cuda": Cuda}


def measure(settings: BenchSettings) -> Iterator[BenchResult]:
    rounds = settings.round_count(ROUNDS)
    machine = MACHINES[settings.device.partition(":")[0]]()
    run_settings = {"batch": BATCH, "inputs": INPUTS, "rounds": rounds, **machine.settings()}
    for content in measure_points(machine, rounds, [p for p in POINTS if settings.wants(str(p.width))]):
        if content["points"]:
            settings.say(point_text(content["points"][-1]))
        yield {"settings": run_settings, **content}


def measure_points(machine: Machine, rounds: int, points: Sequence[WorkloadPoint]) -> Iterator[BenchResult]:
    """The bytes of a net of single units by kind, "floor", and a row for each point, as they are found."""
    floor = {kind: machine.memory(WorkloadPoint(1), kind) for kind in KINDS}
    rows: list[BenchResult] = []
    plain_bytes: dict[int, int] = {}
    yield {"floor": floor, "points": rows}
    for point in points:
        if point.width not in plain_bytes:
            plain_bytes[point.width] = machine.memory(point, "plain")
        row = asdict(point) | {"weights": point.weights} | time_point(machine, point, rounds)
        row |= {"bytes": machine.memory(point, "belief"), "plain_bytes": plain_bytes[point.width]}
        rows.append(row)
        yield {"floor": floor, "points": rows}


def time_point(machine: Machine, point: WorkloadPoint, rounds: int) -> BenchResult:
    """Seconds of a step of all nets, of one plain net, their ratio for one net, and what explains the first."""
    pair = machine.plain_step(point.width), machine.belief_step(point)
    times = []
    for step in pair:
        machine.seconds(step, 3)  # warm
        once = machine.seconds(step, 2)
        times.append(max(1, min(machine.max_steps, int(machine.share / once))))
    pairs = [[machine.seconds(s, t) for s, t in zip(pair, times, strict=True)] for _ in range(rounds)]
    ratios = sorted(ours / point.nets / plain for plain, ours in pairs)
    plain, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {
        "seconds": ours,
        "plain_seconds": plain,
        "steps_per_second": point.nets / ours,
        "plain_steps_per_second": 1 / plain,
        "ratio": statistics.median(ratios),
        "low": ratios[len(ratios) // 4],
        "high": ratios[3 * len(ratios) // 4],
        **machine.profile(pair[1], max(3, times[1] // 2)),
    }


def measure_growth(point: WorkloadPoint, kind: str) -> int:
    """Growth of the peak resident size in bytes, in this process."""
    machine = Cpu()
    # What is loaded and compiled at the first step is no part of the growth.
    small = WorkloadPoint(8, min(point.nets, 2), min(point.samples, 2), point.noise)
    machine.seconds(machine.plain_step(8), 3)
    machine.seconds(machine.belief_step(small), 3)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = resident_bytes("VmRSS")
    step = machine.plain_step(point.width) if kind == "plain" else machine.belief_step(point)
    machine.seconds(step, 3)
    return resident_bytes("VmHWM") - before


def processor() -> str:
    """As the system names it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def caches() -> dict[str, int]:
    """Bytes of the first core's caches that hold data, by level."""
    cache_bytes = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (cache / "type").read_text().strip() != "Instruction":
            cache_bytes[f"L{(cache / 'level').read_text().strip()}"] = (
                int((cache / "size").read_text().strip().rstrip("K")) * 1024
            )
    return cache_bytes


def point_text(row: BenchResult) -> str:
    """A point in words."""
    nets, samples = (f"{row[k]} {k if row[k] > 1 else k[:-1]}" for k in ("nets", "samples"))
    speeds = f"{row['steps_per_second']:,.0f} steps/s (plain {row['plain_steps_per_second']:,.0f})"
    ratio = f"ratio {row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    weight = f"{row['bytes'] / 1e6:,.1f} MB (plain {row['plain_bytes'] / 1e6:,.1f})"
    return f"{row['width']:5d} units, {nets}, {samples}, {row['noise']}: {speeds}, {ratio}, {weight}"


def show(result: BenchResult) -> list[BenchTable]:
    headers = ("width", "K", "S", "noise", "steps/s", "plain, steps/s", "ratio", "MB", "plain, MB")
    rows = []
    for p in result["points"]:
        work = f"{p['width']:,}", f"{p['nets']}", f"{p['samples']}", p["noise"]
        speed = f"{p['steps_per_second']:,.0f}", f"{p['plain_steps_per_second']:,.0f}", f"{p['ratio']:.2f}"
        rows.append((*work, *speed, f"{p['bytes'] / 1e6:,.0f}", f"{p['plain_bytes'] / 1e6:,.0f}"))
    return [BenchTable("Cost against work, K nets with S samples a step", headers, rows, text_columns=4)]


def main() -> None:
    """The growth of one point, in this process."""
    print(measure_growth(WorkloadPoint(**json.loads(sys.argv[1])), sys.argv[2]))


if __name__ == "__main__":
    main()
