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
from doxa_bench.contenders import evotorch, quiet
from doxa_bench.growth import grown
from doxa_bench.kinds import BATCH
from doxa_bench.steps import Believed
from doxa_bench.timing import Step

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


def net(device: str = "cpu") -> nn.Module:
    """784-100-100-10, with the same weights every time."""
    torch.manual_seed(0)
    return doxa.nets.mlp(WIDTHS[0], WIDTHS[1:-1], WIDTHS[-1]).to(device)


def garments(device: str = "cpu") -> tuple[Tensor, Tensor]:
    """The first batch of Fashion-MNIST."""
    found = doxa.data.fashion_mnist()
    x = torch.as_tensor(found.images()[0][:BATCH]).flatten(1)
    return x.to(device), torch.as_tensor(found.y_train[:BATCH]).to(device)


def generation(case: str, net: nn.Module, x: Tensor, y: Tensor, size: int = SIZE) -> Step:
    """Ask, evaluate and tell, once each call."""
    if case == FLOOR:
        return floor(net, x, y, size)
    if case == RIVAL:
        return evotorch.generation(net, x, y, size, SCALE)
    belief = Believed(net, (x, y), replace(LEARNERS[case], size=size))
    return partial(belief.step, belief.batch(x, y))


def floor(net: nn.Module, x: Tensor, y: Tensor, size: int) -> Step:
    """Losses of as many nets, whose weights are there already, by batched products: forward only."""
    maps = [m for m in net.modules() if isinstance(m, nn.Linear)]
    generator, most = torch.Generator(x.device).manual_seed(0), AT_ONCE[x.device.type]

    def drawn(weight: Tensor) -> Tensor:
        noise = torch.randn(size, *weight.shape, device=x.device, generator=generator)
        return noise.mul_(SCALE).add_(weight.detach())

    weights = [(drawn(m.weight).mT, drawn(m.bias).unsqueeze(1)) for m in maps]

    @torch.no_grad()
    def step() -> Tensor:
        losses = []
        for first in range(0, size, most):
            some = slice(first, min(first + most, size))
            h = x.expand(some.stop - first, *x.shape)
            for k, (weight, bias) in enumerate(weights):
                h = torch.baddbmm(bias[some], h, weight[some])
                if k < len(weights) - 1:
                    h = h.relu_()
            found = F.cross_entropy(h.flatten(0, 1), y.repeat(len(h)), reduction="none")
            losses.append(found.view(len(h), -1).mean(1))
        return torch.cat(losses)

    return step


def growth(case: str, device: str = "cpu", size: int = SIZE) -> int:
    """The growth of the peak of memory in bytes, from before the net exists to after some generations."""
    x, y = garments(device)

    def taken(net: nn.Module, size: int) -> None:
        step = generation(case, net, x, y, size)
        for _ in range(TIMES):
            step()

    small = nn.Sequential(nn.Linear(WIDTHS[0], WIDTHS[-1])).to(device)
    return grown(lambda: taken(small, 4), lambda: taken(net(device), size), device)


def main() -> None:
    case, device = sys.argv[1:]
    torch.set_num_threads(2)
    with quiet():
        print(growth(case, device))


if __name__ == "__main__":
    main()
