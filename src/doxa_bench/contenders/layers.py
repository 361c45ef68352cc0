"""Libraries of layers: a net is rebuilt of the library's own, and its user writes the loop."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from doxa_bench.contenders.library import LearningTask
from doxa_bench.trainables import RATE, NamedTensors, TrainableModel, chunks

Loss = Callable[[Tensor, Tensor], Tensor]


def rebuild_layers(
    net: nn.Module, linear: Callable[[nn.Linear], nn.Module], conv: Callable[[nn.Conv2d, dict[str, Any]], nn.Module]
) -> OrderedDict[str, nn.Module]:
    """The layers of a sequential net by name, the linear and convolutional ones in a library's own form."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for name, layer in net.named_children():
        if isinstance(layer, nn.Linear):
            layers[name] = linear(layer)
        elif isinstance(layer, nn.Conv2d):
            # Not every library knows "same"; the padding in numbers is.
            padding = layer.kernel_size[0] // 2 if layer.padding == "same" else layer.padding[0]
            layers[name] = conv(layer, {"kernel_size": layer.kernel_size, "padding": padding})
        else:
            layers[name] = layer
    return layers


@torch.no_grad()
def initialize(
    parameters: Mapping[str, tuple[Tensor, Tensor]], task: LearningTask, inverse: Callable[[Tensor], Tensor]
) -> None:
    """Let a library's means and spreads begin where the task says; `inverse` turns scales into its spreads."""
    weights = dict(task.net.named_parameters())
    for name, (mean, spread) in parameters.items():
        mean.copy_(weights[name])
        spread.copy_(inverse(task.scales[name]))


def trainable_model(model: nn.Module, loss: Loss, means: Mapping[str, Tensor]) -> TrainableModel:
    """What learns by a loss that autograd differentiates."""
    optimiser = torch.optim.Adam(model.parameters(), RATE, fused=True)

    def step(x: Tensor, y: Tensor) -> None:
        optimiser.zero_grad()
        loss(x, y).backward()
        optimiser.step()

    @torch.no_grad()
    def outputs(x: Tensor, samples: int) -> Tensor:
        # Its layers draw anew at every call, so that a draw is another function for each chunk of rows.
        model.eval()
        sampled_outputs = torch.stack([torch.cat([model(part) for part in chunks(x)]) for _ in range(samples)])
        model.train()
        return sampled_outputs

    def mean_gradients(x: Tensor, y: Tensor) -> NamedTensors:
        gradients = torch.autograd.grad(loss(x, y), tuple(means.values()))
        return dict(zip(means, gradients, strict=True))

    return TrainableModel(step, outputs, mean_gradients)


def mean_nll(model: nn.Module, x: Tensor, y: Tensor, samples: int) -> Tensor:
    """Cross-entropy, averaged over draws."""
    return torch.stack([F.cross_entropy(model(x), y) for _ in range(samples)]).mean()
