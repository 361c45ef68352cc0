"""What a worker of a search spends its time on: evaluating its share, and moving on by what all have found.

`python -m doxa_bench.worker_cost ESTIMATOR WIDTH DEVICE` counts the growth of the peak of memory by both, in a process
of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import torch
from torch import Tensor, nn

import doxa
from doxa import search
from doxa.search.engines.contract import Evaluate
from doxa.search.score_function import Perturbation
from doxa_bench.contenders import suppress_warnings
from doxa_bench.net_kinds import BATCH, CLASSES
from doxa_bench.peak_memory import peak_growth
from doxa_bench.timing import wait_for_device
from doxa_bench.trainables import BeliefTrainer

INPUTS = 784
ESTIMATORS: dict[str, Perturbation] = {"weight space": search.weight_space(), "low rank": search.low_rank()}


def make_net(width: int, device: str = "cpu") -> nn.Module:
    """784, twice a width, 10."""
    torch.manual_seed(0)
    return doxa.nets.mlp(INPUTS, (width, width), CLASSES).to(device)


def weight_count(width: int) -> int:
    """How many the net of a width has."""
    return INPUTS * width + width + width * width + width + width * CLASSES + CLASSES


class TimedWorker:
    """One that evaluates a whole population, and is told apart from what it does afterwards."""

    def __init__(self, net: nn.Module, estimator: str, size: int, device: str) -> None:
        torch.manual_seed(0)
        x, y = torch.rand(BATCH, INPUTS, device=device), torch.randint(0, CLASSES, (BATCH,), device=device)
        self.device, self.spent = device, 0.0
        self.belief = BeliefTrainer(net, (x, y), search.learner(ESTIMATORS[estimator], size=size))
        self.batch = self.belief.batch(x, y)
        self.belief.gradient.exchange = self._exchange  # type: ignore[attr-defined]

    def _exchange(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        wait_for_device(self.device)
        start = time.perf_counter()
        evaluations: list[Tensor | None] = [evaluate(block) for block in blocks]
        wait_for_device(self.device)
        self.spent = time.perf_counter() - start
        return evaluations

    def generation(self) -> tuple[float, float]:
        """Seconds in which it evaluates, and in which it makes all perturbations again and moves."""
        wait_for_device(self.device)
        start = time.perf_counter()
        self.belief.step(self.batch)
        wait_for_device(self.device)
        return self.spent, time.perf_counter() - start - self.spent


def measure_growth(estimator: str, width: int, device: str = "cpu") -> int:
    """The growth of the peak of memory in bytes, from before the net exists to after three generations."""

    def take_generations(width: int) -> None:
        worker = TimedWorker(make_net(width, device), estimator, 4, device)
        for _ in range(3):
            worker.generation()

    return peak_growth(lambda: take_generations(1), lambda: take_generations(width), device)


def main() -> None:
    estimator, width, device = sys.argv[1:]
    torch.set_num_threads(2)
    with suppress_warnings():
        print(measure_growth(estimator, int(width), device))


if __name__ == "__main__":
    main()
