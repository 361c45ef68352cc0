"""torchbnn: layers with log σ, and a KL that is summed over them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from doxa_bench.contenders.layers import initialize, mean_nll, rebuild_layers, trainable_model
from doxa_bench.contenders.library import LearningTask, Library
from doxa_bench.trainables import TrainableModel


def build_trainable(task: LearningTask) -> TrainableModel:
    import torchbnn as bnn

    layers = rebuild_layers(
        task.net,
        lambda m: bnn.BayesLinear(0.0, 1.0, m.in_features, m.out_features),
        lambda m, how: bnn.BayesConv2d(0.0, 1.0, m.in_channels, m.out_channels, **how),
    )
    means_and_log_sigmas = {
        f"{name}.{part}": (getattr(layer, f"{part}_mu"), getattr(layer, f"{part}_log_sigma"))
        for name, layer in layers.items()
        if isinstance(layer, bnn.BayesLinear | bnn.BayesConv2d)
        for part in ("weight", "bias")
    }
    initialize(means_and_log_sigmas, task, torch.log)
    model = nn.Sequential(layers).to(next(task.net.parameters()).device)
    divergence = bnn.BKLLoss(reduction="sum")

    def loss(x: Tensor, y: Tensor) -> Tensor:
        # The library keeps the sum in a tensor of one entry.
        return mean_nll(model, x, y, task.samples) + divergence(model).sum() / task.rows

    return trainable_model(model, loss, {name: mean for name, (mean, _) in means_and_log_sigmas.items()})


LIBRARY = Library("torchbnn", ("shared",), "closed form, right", build_trainable)
