"""Local noise as the authors had it: the variance of an activation is of weights alone, a bias is drawn once a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.contracts import Problem
from doxa.engine.contracts import Gradient
from doxa.gradients.variational import VariationalGradient
from doxa.predict.belief import Belief
from doxa.weights.layout import Layout
from doxa_replicate.weight_uncertainty.wrapped_learner import WrappedLearner


@dataclass(frozen=True)
class SharedBiases(WrappedLearner):
    """Another learner with local noise, which draws its biases for the minibatch as shared noise does."""

    def start(self, problem: Problem, fleet: Sequence[SharedBiases]) -> Gradient:
        biases = {name: "a bias" for name, use in problem.uses.single_use.items() if use.role == "bias"}
        uses = replace(
            problem.uses,
            single_use={name: use for name, use in problem.uses.single_use.items() if name not in biases},
            fallback_reasons={**problem.uses.fallback_reasons, **biases},
        )
        gradient = self.learner.start(replace(problem, uses=uses), [each.learner for each in fleet])
        assert isinstance(gradient, VariationalGradient)
        gradient.noise |= dict.fromkeys(biases, "shared")  # as it was asked for
        return gradient


@torch.no_grad()
def local_outputs(belief: Belief, x: Any, draws: int, seed: int) -> Tensor:
    """What a perceptron with ReLUs says under the noise that it learned with: rows apart, biases in common [S, B].

    b = f(x, mean) + √f(x², scale²)·ζ + c,  c ~ N(mean, scale²) once a draw
    """
    slots = Layout(belief.layout.random_slots)
    means = slots.views(belief.posterior.mean[: slots.size])
    scales = slots.views(belief.posterior.scale)
    generator = torch.Generator(belief.posterior.mean.device).manual_seed(seed)

    def normals(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=generator.device)

    h = torch.as_tensor(x).to(belief.posterior.mean).expand(draws, -1, -1)
    weights = [name for name in means if name.endswith("weight")]
    for k, name in enumerate(weights):
        bias = name.removesuffix("weight") + "bias"
        width = len(means[name])
        centre = h @ means[name].T + means[bias] + scales[bias] * normals(draws, 1, width)
        deviation = (h.square() @ scales[name].square().T).sqrt()
        h = centre + deviation * normals(draws, h.shape[1], width)
        if k + 1 < len(weights):
            h = F.relu(h)
    return h[..., 0]
