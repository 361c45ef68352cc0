"""What does a captured step cost on a GPU, as a ratio to the same plain net, captured too?

Both are whole steps, batch gathered by index on the device, recorded as a CUDA graph; the plain net is compiled and has
torch's fused Adam. Matrices are multiplied in TF32 in both. Also fleets, and a long run of MNIST's size.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import doxa
from doxa.engine.capture import Recording
from doxa.engine.contracts import Learner
from doxa.engine.run import training_context
from doxa.errors import BadInput
from doxa.training.members import Member
from doxa.training.options import Options
from doxa.training.prepare import prepare_run
from doxa_bench.net_kinds import BATCH, ROWS
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable
from doxa_bench.timing import ratio_quartiles
from doxa_bench.trainables import GAUSSIAN
from doxa_bench.vgg import vgg

REPLAYS = 300
ROUNDS, EPOCHS = 7, 600
MIXTURE = doxa.priors.scale_mixture()
variational = doxa.learners.variational

LEARNERS: dict[str, Learner] = {
    "shared": variational(GAUSSIAN),
    "shared, scale mixture": variational(MIXTURE),
    "shared, two samples": variational(GAUSSIAN, samples=2),
    "local": variational(GAUSSIAN, doxa.noise.local),
    "flipout": variational(GAUSSIAN, doxa.noise.flipout),
}


def mlp(width: int) -> nn.Module:
    return doxa.nets.mlp(784, (width, width), 10)


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], tuple[str, ...]]] = {
    "784-1200-1200-10": (lambda: mlp(1200), (784,), tuple(LEARNERS)),
    "784-400-400-10": (lambda: mlp(400), (784,), ("shared",)),
    "LeNet-5": (doxa.nets.lenet5, (1, 28, 28), ("shared", "local", "flipout")),
    "VGG with BatchNorm": (vgg, (3, 32, 32), ("shared", "flipout")),
}
FLEETS = {"100 units, 64 nets": (100, 64), "400 units, 64 nets": (400, 64), "1200 units, 16 nets": (1200, 16)}


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    if not torch.cuda.is_available():
        raise BadInput("captured_cost is about CUDA graphs, and torch finds no GPU here")
    warnings.simplefilter("ignore")
    torch.set_float32_matmul_precision("high")
    rounds = settings.round_count(ROUNDS)
    gpu = torch.cuda.get_device_name()
    result: dict[str, Any] = {"settings": {"batch": BATCH, "rounds": rounds, "gpu": gpu, "matmul": "tf32"}, "steps": {}}
    result["memory"], result["fleets"] = measure_memory(), measure_fleets(rounds)
    yield result
    for name in NETS:
        if settings.wants(name):
            result["steps"] |= measure_steps(name, settings)
            yield result
    result["long_run"] = time_long_run(EPOCHS // 20 if settings.quick else EPOCHS)
    yield result


def random_data(shape: tuple[int, ...], rows: int = ROWS) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.rand(rows, *shape, device="cuda"), torch.randint(0, 10, (rows,), device="cuda")


def plain_step(net: nn.Module, x: torch.Tensor, y: torch.Tensor, compiled: bool = True) -> Callable[[], None]:
    """The step of a plain net as a recording."""
    net = net.cuda()
    optimiser = torch.optim.Adam(net.parameters(), torch.tensor(1e-3, device="cuda"), fused=True, capturable=True)
    order, position = torch.randperm(len(x), device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    batch_offsets, running_loss = (
        torch.arange(BATCH, device="cuda"),
        torch.zeros((), dtype=torch.float64, device="cuda"),
    )

    def written(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(net(x), y)

    loss = torch.compile(written) if compiled else written

    def step() -> None:
        index = order.index_select(0, position * BATCH + batch_offsets)
        optimiser.zero_grad()
        batch_loss = loss(x[index], y[index])
        batch_loss.backward()
        optimiser.step()
        running_loss.add_(batch_loss.detach())
        position.add_(1)

    side_stream = torch.cuda.Stream()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side_stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay() -> None:
        graph.replay()

    replay.rewind = position.zero_  # type: ignore[attr-defined]
    replay.keep_alive = step  # type: ignore[attr-defined]  # the recording reads memory that must not be given back
    return replay


def belief_step(
    net: nn.Module, x: torch.Tensor, y: torch.Tensor, learners: Sequence[Learner], compiled: bool
) -> Callable[[], None]:
    """The step of beliefs as a recording, as `fit` makes it."""
    members = [Member(net, learner, seed) for seed, learner in enumerate(learners)]
    run, _, _ = prepare_run(members, (x, y), doxa.likelihoods.categorical(), Options(batch_size=BATCH))
    with training_context(run.problem, run.device):
        recorded = Recording(run, compiled)
    recorded.table.load_rows(run.step_numbers(0, run.span), 0, 0)

    def replay() -> None:
        recorded.graphs[BATCH].replay()

    replay.rewind = recorded.table.position.zero_  # type: ignore[attr-defined]
    return replay


def step_microseconds(replay: Any, times: int) -> float:
    replay.rewind()
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        replay()
    stop.record()
    torch.cuda.synchronize()
    return 1e3 * start.elapsed_time(stop) / times


def compare(base: Callable[[], None], ours: Callable[[], None], rounds: int, times: int) -> dict[str, float]:
    """Taken in turn, many rounds; the ratio is the median over rounds."""
    for replay in (base, ours):
        step_microseconds(replay, 20)
    pairs = [(step_microseconds(base, times), step_microseconds(ours, times)) for _ in range(rounds)]
    return {
        **ratio_quartiles([b / a for a, b in pairs]),
        "plain_us": statistics.median(a for a, _ in pairs),
        "us": statistics.median(b for _, b in pairs),
    }


def measure_steps(name: str, settings: BenchSettings) -> dict[str, dict[str, float]]:
    make, shape, learners = NETS[name]
    x, y = random_data(shape)
    times = REPLAYS if len(shape) == 1 else 60
    torch._dynamo.reset()
    base, timings = plain_step(make(), x, y), {}
    for learner in learners:
        for compiled in (True, False):
            ours = belief_step(make(), x, y, [LEARNERS[learner]], compiled)
            case = f"{name}, {learner}{'' if compiled else ', not compiled'}"
            timings[case] = compare(base, ours, settings.round_count(ROUNDS), times)
            settings.say(f"{case}: {timings[case]['ratio']:.2f} times the plain step")
    return timings


def measure_fleets(rounds: int) -> dict[str, dict[str, float]]:
    x, y = random_data((784,))
    timings = {}
    for name, (width, nets) in FLEETS.items():
        replay = belief_step(mlp(width), x, y, [variational(GAUSSIAN)] * nets, compiled=False)
        step_microseconds(replay, 20)
        per_net = statistics.median(step_microseconds(replay, 100) / nets for _ in range(rounds))
        timings[name] = {"us_per_net": per_net}
    return timings


def measure_memory() -> dict[str, float]:
    """Growth of the peak of allocated memory, 1200 units, one shared sample, in bytes."""
    x, y = random_data((784,))
    peak_bytes = {}
    for kind in ("plain", "belief"):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        replay = (
            plain_step(mlp(1200), x, y)
            if kind == "plain"
            else belief_step(mlp(1200), x, y, [variational(GAUSSIAN)], True)
        )
        step_microseconds(replay, 5)
        peak_bytes[kind] = torch.cuda.max_memory_allocated() - before
        del replay
    return {"ratio": peak_bytes["belief"] / peak_bytes["plain"], **{f"{k}_mb": v / 1e6 for k, v in peak_bytes.items()}}


def time_long_run(epochs: int) -> dict[str, float]:
    """A run of MNIST's size, 1200 units, two samples, by `doxa.fit` from beginning to end."""
    x, y = random_data((784,))
    start = time.perf_counter()
    doxa.fit(
        mlp(1200).cuda(),
        (x, y),
        learner=variational(GAUSSIAN, samples=2),
        likelihood=doxa.likelihoods.categorical(),
        epochs=epochs,
        lr=1e-4,
        progress=False,
    )
    torch.cuda.synchronize()
    return {"epochs": epochs, "seconds": time.perf_counter() - start}


def show(result: dict[str, Any]) -> list[BenchTable]:
    step_timings, rows = result["steps"], []
    for name, compiled_timing in step_timings.items():
        if name.endswith(", not compiled"):
            continue
        net, _, learner_name = name.partition(", ")
        uncompiled_timing = step_timings.get(f"{name}, not compiled")
        numbers = (
            f"{compiled_timing['plain_us']:.0f}",
            f"{compiled_timing['us']:.0f}",
            f"{compiled_timing['ratio']:.2f}",
        )
        rows.append(
            (net, learner_name, *numbers, "–" if uncompiled_timing is None else f"{uncompiled_timing['ratio']:.2f}")
        )
    headers = ("net", "learned with", "plain, µs", "belief, µs", "ratio", "ratio, net not compiled")
    notes = [f"peak memory, 1200 units and shared noise: {result['memory']['ratio']:.2f} times the plain net's"]
    if "long_run" in result:
        run = result["long_run"]
        notes.append(f"{run['epochs']:.0f} epochs of 60,000 rows, 1200 units, two samples: {run['seconds']:.0f} s")
    fleet = [(name, f"{r['us_per_net']:.1f}") for name, r in result["fleets"].items()]
    return [
        BenchTable("A captured step of a belief, times a captured step of the plain net", headers, rows, 2, notes),
        BenchTable("A captured step of a fleet, not compiled", ("fleet", "µs a net and step"), fleet),
    ]
