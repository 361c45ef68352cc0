"""torchbnn: layers with log σ, and a KL that is summed over them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from doxa_bench.contenders.layers import mean_nll, place, pupil, rebuilt
from doxa_bench.contenders.library import Library, Task
from doxa_bench.steps import Pupil


def learn(task: Task) -> Pupil:
    import torchbnn as bnn

    layers = rebuilt(
        task.net,
        lambda m: bnn.BayesLinear(0.0, 1.0, m.in_features, m.out_features),
        lambda m, how: bnn.BayesConv2d(0.0, 1.0, m.in_channels, m.out_channels, **how),
    )
    own = {
        f"{name}.{part}": (getattr(layer, f"{part}_mu"), getattr(layer, f"{part}_log_sigma"))
        for name, layer in layers.items()
        if isinstance(layer, bnn.BayesLinear | bnn.BayesConv2d)
        for part in ("weight", "bias")
    }
    place(own, task, torch.log)
    model = nn.Sequential(layers).to(next(task.net.parameters()).device)
    divergence = bnn.BKLLoss(reduction="sum")

    def loss(x: Tensor, y: Tensor) -> Tensor:
        # The library keeps the sum in a tensor of one entry.
        return mean_nll(model, x, y, task.samples) + divergence(model).sum() / task.rows

    return pupil(model, loss, {name: mean for name, (mean, _) in own.items()})


LIBRARY = Library("torchbnn", ("shared",), "closed form, right", learn)
