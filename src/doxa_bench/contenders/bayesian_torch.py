"""bayesian-torch: a net converted in place, by reparameterisation or flipout."""

from __future__ import annotations

import copy

from torch import Tensor

from doxa.posteriors.mean_field import inverse_softplus
from doxa_bench.contenders.layers import initialize, mean_nll, trainable_model
from doxa_bench.contenders.library import LearningTask, Library
from doxa_bench.trainables import TrainableModel

TYPES = {"shared": "Reparameterization", "flipout": "Flipout"}


def build_trainable(task: LearningTask) -> TrainableModel:
    from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss

    model = copy.deepcopy(task.net)
    settings = {
        "prior_mu": 0.0,
        "prior_sigma": 1.0,
        "posterior_mu_init": 0.0,
        "posterior_rho_init": -3.0,
        "type": TYPES[task.noise],
        "moped_enable": False,
        "moped_delta": 0.5,
    }
    dnn_to_bnn(model, settings)
    means_and_rhos = {}
    for name, layer in model.named_modules():
        if hasattr(layer, "mu_bias"):
            weight = "weight" if hasattr(layer, "mu_weight") else "kernel"
            means_and_rhos[f"{name}.weight"] = getattr(layer, f"mu_{weight}"), getattr(layer, f"rho_{weight}")
            means_and_rhos[f"{name}.bias"] = layer.mu_bias, layer.rho_bias
    initialize(means_and_rhos, task, inverse_softplus)
    model.to(next(task.net.parameters()).device)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return mean_nll(model, x, y, task.samples) + get_kl_loss(model) / task.rows

    return trainable_model(model, loss, {name: mean for name, (mean, _) in means_and_rhos.items()})


LIBRARY = Library(
    "bayesian-torch",
    tuple(TYPES),
    "closed form, but the mean over each tensor's weights where the sum is due: far too small",
    build_trainable,
)
