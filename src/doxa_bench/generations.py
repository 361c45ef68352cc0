"""A generation of a search, as many ways as it can be had, and the least that it could cost.

`python -m doxa_bench.generations CASE DEVICE` counts the growth of the peak of memory by one of them, in a process of
its own.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import doxa
from doxa import search
from doxa_bench.contenders import evotorch, suppress_warnings
from doxa_bench.net_kinds import BATCH
from doxa_bench.peak_memory import peak_growth
from doxa_bench.timing import Step
from doxa_bench.trainables import BeliefTrainer

SIZE, SCALE = 1000, 0.05
WIDTHS = (784, 100, 100, 10)
FLOOR, RIVAL = "floor", evotorch.NAME
AT_ONCE = {"cpu": 50, "cuda": SIZE}  # nets of the floor in one product: on a CPU more do not stay in its caches
TIMES = 3  # generations in which memory is counted

LEARNERS = {
    "weight space": search.learner(search.weight_space(), scale=SCALE),
    # What evotorch's strategy does too: a scale for each weight, which is learned.
    "weight space, separable": search.learner(
        search.weight_space(shaping=search.shaping.utilities),
        gradient=search.natural,
        scale=SCALE,
        per="weight",
        scale_rate=1.0,
    ),
    "low rank": search.learner(search.low_rank(), scale=SCALE),
    "local": search.learner(search.local(), scale=SCALE),
    "local, layer-wise": search.learner(search.local(), scale=SCALE, per="layer", scale_rate=1.0),
    "local, separable": search.learner(search.local(), scale=SCALE, per="weight", scale_rate=1.0),
}


def make_net(device: str = "cpu") -> nn.Module:
    """784-100-100-10, with the same weights every time."""
    torch.manual_seed(0)
    return doxa.nets.mlp(WIDTHS[0], WIDTHS[1:-1], WIDTHS[-1]).to(device)


def fashion_mnist_batch(device: str = "cpu") -> tuple[Tensor, Tensor]:
    """The first batch of Fashion-MNIST."""
    dataset = doxa.data.fashion_mnist()
    x = torch.as_tensor(dataset.images()[0][:BATCH]).flatten(1)
    return x.to(device), torch.as_tensor(dataset.y_train[:BATCH]).to(device)


def generation_step(case: str, net: nn.Module, x: Tensor, y: Tensor, size: int = SIZE) -> Step:
    """Ask, evaluate and tell, once each call."""
    if case == FLOOR:
        return floor_step(net, x, y, size)
    if case == RIVAL:
        return evotorch.generation(net, x, y, size, SCALE)
    belief = BeliefTrainer(net, (x, y), replace(LEARNERS[case], size=size))
    return partial(belief.step, belief.batch(x, y))


def floor_step(net: nn.Module, x: Tensor, y: Tensor, size: int) -> Step:
    """Losses of as many nets, whose weights are there already, by batched products: forward only."""
    linear_layers = [m for m in net.modules() if isinstance(m, nn.Linear)]
    generator, chunk_size = torch.Generator(x.device).manual_seed(0), AT_ONCE[x.device.type]

    def draw_weights(weight: Tensor) -> Tensor:
        noise = torch.randn(size, *weight.shape, device=x.device, generator=generator)
        return noise.mul_(SCALE).add_(weight.detach())

    weights = [(draw_weights(m.weight).mT, draw_weights(m.bias).unsqueeze(1)) for m in linear_layers]

    @torch.no_grad()
    def step() -> Tensor:
        losses = []
        for first in range(0, size, chunk_size):
            chunk = slice(first, min(first + chunk_size, size))
            h = x.expand(chunk.stop - first, *x.shape)
            for k, (weight, bias) in enumerate(weights):
                h = torch.baddbmm(bias[chunk], h, weight[chunk])
                if k < len(weights) - 1:
                    h = h.relu_()
            row_losses = F.cross_entropy(h.flatten(0, 1), y.repeat(len(h)), reduction="none")
            losses.append(row_losses.view(len(h), -1).mean(1))
        return torch.cat(losses)

    return step


def measure_growth(case: str, device: str = "cpu", size: int = SIZE) -> int:
    """The growth of the peak of memory in bytes, from before the net exists to after some generations."""
    x, y = fashion_mnist_batch(device)

    def take_generations(net: nn.Module, size: int) -> None:
        step = generation_step(case, net, x, y, size)
        for _ in range(TIMES):
            step()

    small = nn.Sequential(nn.Linear(WIDTHS[0], WIDTHS[-1])).to(device)
    return peak_growth(lambda: take_generations(small, 4), lambda: take_generations(make_net(device), size), device)


def main() -> None:
    case, device = sys.argv[1:]
    torch.set_num_threads(2)
    with suppress_warnings():
        print(measure_growth(case, device))


if __name__ == "__main__":
    main()
