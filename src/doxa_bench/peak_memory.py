"""A process of its own in which the peak of memory is counted: `python -m doxa_bench.peak_memory KIND CASE DEVICE`.

The case is `plain`, a learner of step_cost.py, or `NOISE gaussian, LIBRARY`. Whatever it needs is imported and warmed
on a small net first; counted is the growth from before the net exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from doxa_bench.contenders import TABLE, LearningTask, suppress_warnings
from doxa_bench.net_kinds import new_net, random_rows
from doxa_bench.step_cost import LEARNERS
from doxa_bench.timing import Step
from doxa_bench.trainables import BeliefTrainer, equal_scales, plain_model

STEPS = 5


def main() -> None:
    kind, case, device = sys.argv[1:]
    torch.set_num_threads(2)
    with suppress_warnings():
        print(measure_growth(kind, case, device))


def measure_growth(kind: str, case: str, device: str = "cpu") -> int:
    """Growth of the peak of memory in bytes: resident in this process, or allocated on a GPU."""
    x, y = random_rows(kind, device=device)
    small = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), 10)).to(device)
    return peak_growth(
        lambda: _take_steps(training_step(small, case, x, y)),
        lambda: _take_steps(training_step(new_net(kind, device), case, x, y)),
        device,
    )


def peak_growth(warm: Callable[[], None], work: Callable[[], None], device: str) -> int:
    """Growth of the peak in bytes by some work, when what it needs has been loaded by a smaller one."""
    warm()
    before = _reset_peak(device)
    work()
    return _peak(device) - before


def training_step(net: nn.Module, case: str, x: Tensor, y: Tensor) -> Step:
    """The training step of a case."""
    if case == "plain":
        trainable = plain_model(net)
    elif case in LEARNERS:
        trainable = BeliefTrainer(net, (x, y), LEARNERS[case]).trainable_model()
    else:
        noise, _, library = case.partition(" gaussian, ")
        trainable = TABLE[library].build_trainable(LearningTask(net, equal_scales(net), noise=noise))
    return lambda: trainable.step(x, y)


def _take_steps(step: Step) -> None:
    for _ in range(STEPS):
        step()


def _reset_peak(device: str) -> int:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    return resident_bytes("VmRSS")


def _peak(device: str) -> int:
    return torch.cuda.max_memory_allocated() if device.startswith("cuda") else resident_bytes("VmHWM")


def resident_bytes(field: str) -> int:
    """This process in bytes, as the system has it under such a name."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
