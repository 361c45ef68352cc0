"""A process of its own in which the peak of memory is counted: `python -m doxa_bench.growth KIND CASE DEVICE`.

The case is `plain`, a learner of step_cost.py, or `NOISE gaussian, LIBRARY`. Whatever it needs is imported and warmed
on a small net first; counted is the growth from before the net exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from doxa_bench.contenders import TABLE, Task, quiet
from doxa_bench.kinds import new, noise_rows
from doxa_bench.step_cost import LEARNERS
from doxa_bench.steps import Believed, even, plain
from doxa_bench.timing import Step

STEPS = 5


def main() -> None:
    kind, case, device = sys.argv[1:]
    torch.set_num_threads(2)
    with quiet():
        print(growth(kind, case, device))


def growth(kind: str, case: str, device: str = "cpu") -> int:
    """Growth of the peak of memory in bytes: resident in this process, or allocated on a GPU."""
    x, y = noise_rows(kind, device=device)
    small = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), 10)).to(device)
    return grown(
        lambda: _taken(stepping(small, case, x, y)), lambda: _taken(stepping(new(kind, device), case, x, y)), device
    )


def grown(warm: Callable[[], None], work: Callable[[], None], device: str) -> int:
    """Growth of the peak in bytes by some work, when what it needs has been loaded by a smaller one."""
    warm()
    before = _start(device)
    work()
    return _peak(device) - before


def stepping(net: nn.Module, case: str, x: Tensor, y: Tensor) -> Step:
    """The training step of a case."""
    if case == "plain":
        pupil = plain(net)
    elif case in LEARNERS:
        pupil = Believed(net, (x, y), LEARNERS[case]).pupil()
    else:
        noise, _, library = case.partition(" gaussian, ")
        pupil = TABLE[library].learn(Task(net, even(net), noise=noise))
    return lambda: pupil.step(x, y)


def _taken(step: Step) -> None:
    for _ in range(STEPS):
        step()


def _start(device: str) -> int:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    return resident("VmRSS")


def _peak(device: str) -> int:
    return torch.cuda.max_memory_allocated() if device.startswith("cuda") else resident("VmHWM")


def resident(field: str) -> int:
    """This process in bytes, as the system has it under such a name."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
