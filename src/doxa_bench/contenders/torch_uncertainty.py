"""torch-uncertainty: layers under its ELBO loss."""

from __future__ import annotations

import functools

import torch
from torch import nn

from doxa.posteriors.mean_field import inverse_softplus
from doxa_bench.contenders.layers import initialize, rebuild_layers, trainable_model
from doxa_bench.contenders.library import LearningTask, Library
from doxa_bench.trainables import TrainableModel


def build_trainable(task: LearningTask) -> TrainableModel:
    make_torchvision_importable()
    from torch_uncertainty.layers.bayesian import BayesConv2d, BayesLinear, bayesian_modules
    from torch_uncertainty.losses import ELBOLoss

    prior = {"prior_sigma_1": 1.0, "prior_sigma_2": 1.0, "prior_pi": 1.0}
    layers = rebuild_layers(
        task.net,
        lambda m: BayesLinear(m.in_features, m.out_features, **prior),
        lambda m, how: BayesConv2d(m.in_channels, m.out_channels, **how, **prior),
    )
    # What it calls sigma is a rho: softplus makes the scale of it.
    means_and_rhos = {
        f"{name}.{part}": (getattr(layer, f"{part}_mu"), getattr(layer, f"{part}_sigma"))
        for name, layer in layers.items()
        if isinstance(layer, bayesian_modules)
        for part in ("weight", "bias")
    }
    initialize(means_and_rhos, task, inverse_softplus)
    model = nn.Sequential(layers).to(next(task.net.parameters()).device)
    count = sum(isinstance(layer, bayesian_modules) for layer in model.modules())
    elbo = ELBOLoss(model, nn.CrossEntropyLoss(), kl_weight=count / task.rows, num_samples=task.samples)
    return trainable_model(
        model, lambda x, y: elbo(x, y).sum(), {name: mean for name, (mean, _) in means_and_rhos.items()}
    )


@functools.cache
def make_torchvision_importable() -> list[object]:
    """Makes torchvision importable beside a torch without CUDA; what is returned must be kept.

    The registry's wheel of torchvision is built for CUDA. Beside another torch its operators do not load, and its
    import fails for want of two that nothing here uses: naming them is enough.
    """
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        operator_library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            operator_library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return [operator_library]
    return []


LIBRARY = Library(
    "torch-uncertainty",
    ("shared",),
    "one draw, divided by the number of layers; the weight given here undoes that",
    build_trainable,
)
