"""blitz: layers that weigh every draw by its densities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from doxa.posteriors.mean_field import inverse_softplus
from doxa_bench.contenders.layers import initialize, rebuild_layers, trainable_model
from doxa_bench.contenders.library import LearningTask, Library
from doxa_bench.trainables import TrainableModel


def build_trainable(task: LearningTask) -> TrainableModel:
    from blitz.modules import BayesianConv2d, BayesianLinear
    from blitz.utils import variational_estimator

    @variational_estimator
    class Net(nn.Sequential):
        pass

    device = next(task.net.parameters()).device
    # Given as a distribution, the prior costs one density; the library's own mixture costs two.
    prior = torch.distributions.Normal(torch.zeros((), device=device), torch.ones((), device=device))
    layers = rebuild_layers(
        task.net,
        lambda m: BayesianLinear(m.in_features, m.out_features, prior_dist=prior),
        lambda m, how: BayesianConv2d(m.in_channels, m.out_channels, prior_dist=prior, **how),
    )
    model: Any = Net(layers).to(device)
    # Layers and their samplers hold parameters of their own over the same memory; the samplers' are those learned.
    means_and_rhos = {
        f"{name}.{part}": (getattr(layer, f"{part}_sampler").mu, getattr(layer, f"{part}_sampler").rho)
        for name, layer in layers.items()
        if isinstance(layer, BayesianLinear | BayesianConv2d)
        for part in ("weight", "bias")
    }
    initialize(means_and_rhos, task, inverse_softplus)
    criterion = nn.CrossEntropyLoss()

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return model.sample_elbo(x, y, criterion, task.samples, complexity_cost_weight=1 / task.rows)

    return trainable_model(model, loss, {name: mean for name, (mean, _) in means_and_rhos.items()})


LIBRARY = Library(
    "blitz-bayesian-pytorch",
    ("shared",),
    "one draw; 1e-6 is added to the prior's density, which bounds it",
    build_trainable,
)
