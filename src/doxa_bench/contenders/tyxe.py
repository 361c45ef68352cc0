"""TyXe: a net as a Pyro model, its noise by effect handlers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from doxa_bench.contenders.library import LearningTask, Library
from doxa_bench.trainables import RATE, NamedTensors, TrainableModel, chunks

_names = itertools.count()


def build_trainable(task: LearningTask) -> TrainableModel:
    import pyro
    import tyxe

    net = task.net
    names, device = [name for name, _ in net.named_parameters()], next(net.parameters()).device
    normal = pyro.distributions.Normal(torch.zeros((), device=device), torch.ones((), device=device))
    prior = tyxe.priors.IIDPrior(normal, expose_all=False, hide_module_types=(nn.BatchNorm2d,))
    # Pyro keeps parameters by name for the whole process: nets of one name would share them.
    name = f"belief{next(_names)}"
    start = tyxe.guides.PretrainedInitializer.from_net(net, prefix=f"{name}.net")
    scales = {f"{name}.net.{weight_name}": task.scales[weight_name].clone() for weight_name in names}
    guide = functools.partial(tyxe.guides.AutoNormal, init_loc_fn=start, init_scale=scales)
    likelihood = tyxe.likelihoods.Categorical(dataset_size=task.rows)
    belief = tyxe.VariationalBNN(net, prior, likelihood, guide, name=name)
    optimiser = pyro.optim.Adam({"lr": RATE, "fused": True})
    noise_contexts: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "shared": nullcontext,
        "local": tyxe.poutine.local_reparameterization,
        "flipout": tyxe.poutine.flipout,
    }

    def step(x: Tensor, y: Tensor) -> None:
        with noise_contexts[task.noise]():
            belief.fit([(x, y)], optimiser, 1, num_particles=task.samples)

    @torch.no_grad()
    def outputs(x: Tensor, samples: int) -> Tensor:
        belief.net.eval()
        draws = []
        for _ in range(samples):
            trace = pyro.poutine.trace(belief.net_guide).get_trace(x[:1])
            parts = [belief.predict(part, guide_traces=[trace], aggregate=False)[0] for part in chunks(x)]
            draws.append(torch.cat(parts))
        belief.net.train()
        return torch.stack(draws)

    def mean_gradients(x: Tensor, y: Tensor) -> NamedTensors:
        with noise_contexts[task.noise]():
            elbo = pyro.infer.TraceMeanField_ELBO(task.samples)
            loss = elbo.differentiable_loss(belief.model, belief.guide, (x,), y) / task.rows
        means = {
            weight_name: pyro.util.deep_getattr(belief.net_guide, f"{name}.net.{weight_name}.loc")
            for weight_name in names
        }
        return dict(zip(means, torch.autograd.grad(loss, tuple(means.values())), strict=True))

    return TrainableModel(step, outputs, mean_gradients)


LIBRARY = Library("tyxe", ("shared", "local", "flipout"), "closed form, right", build_trainable)
