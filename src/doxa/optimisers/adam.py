"""Adam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Schedule
from doxa.engine.context import StepContext
from doxa.engine.contracts import Gradient, State
from doxa.engine.recipes import GaussianSlopes, GradientRows, as_gradient_rows, group_indices
from doxa.engine.states import restore
from doxa.errors import BadInput, require_positive
from doxa.flat import BiasCorrections, Moments, bias_corrections, decays, gaussian_adam
from doxa.flat import adam as adam_step


@dataclass(frozen=True)
class Adam:
    """Steps of about the learning rate in every direction, whatever the size of the gradient.

    x ← x − rate · m̂ / (√v̂ + eps),  m and v running means of the gradient and of its square, which forget by betas

    The step of a belief is taken in the same pass over memory that finishes its gradients.
    Kingma & Ba (2015), Adam: a method for stochastic optimization.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        if not (isinstance(self.betas, tuple | list) and len(self.betas) == 2):
            raise BadInput(f"betas must be two numbers, as (0.9, 0.999); got {self.betas!r}")
        for beta in self.betas:
            if not 0 <= beta < 1:
                raise BadInput(f"betas must lie between 0 and 1, 1 excluded; got {beta}")
        object.__setattr__(self, "betas", tuple(self.betas))  # of a list too: equal settings, equal hashes
        require_positive("eps", self.eps)

    def start(self, gradient: Gradient) -> AdamStepper:
        """Adam for a gradient's parameters."""
        return AdamStepper(self, gradient)


class AdamStepper:
    """Adam with what it remembers of every parameter, a step of each group being counted by itself."""

    eager = None

    def __init__(self, settings: Adam, gradient: Gradient) -> None:
        self.settings, self.decays = settings, decays(*settings.betas, settings.eps)
        self.values = {p.name: p.values for p in gradient.parameters}
        self.moments = {name: Moments.initial(values) for name, values in self.values.items()}
        _, self.groups = group_indices(gradient)

    def schedules(self) -> dict[str, Sequence[Schedule]]:
        return {}

    def numbers(self, count: int) -> tuple[float, float]:
        """What the start has left of both moments at a step, counted from 1."""
        return bias_corrections(count, *self.settings.betas)

    @torch.no_grad()
    def step(self, gradient: Gradient, context: StepContext) -> None:
        for recipe in gradient.slopes(context):
            if isinstance(recipe, GaussianSlopes):
                self._step_gaussian(recipe, context)
                continue
            for rows in as_gradient_rows(recipe, self.values):
                group = self.groups[rows.parameter]
                self._step(rows, context.rates[group], context.scalars[group])

    def _step_gaussian(self, recipe: GaussianSlopes, context: StepContext) -> None:
        """In the same pass that makes the gradient; mean and scale of a belief are one group."""
        group, span = self.groups["mean"], recipe.span
        mean_moments, rho_moments = self.moments["mean"].columns(span), self.moments["rho"].columns(span)
        gaussian_adam(
            recipe.slopes, mean_moments, rho_moments, context.rates[group], context.scalars[group], self.decays
        )

    def _step(self, recipe: GradientRows, rates: Tensor, corrections: BiasCorrections) -> None:
        """Along a gradient that is there."""
        if recipe.decay is not None:
            recipe.values.mul_(1 - (rates.clamp_min(0) * recipe.decay)[:, None])
        if recipe.rate is not None:
            rates = torch.where(rates < 0, rates, rates * recipe.rate)
        moments = self.moments[recipe.parameter].columns(recipe.span)
        adam_step(recipe.values, recipe.rows, moments, rates, corrections, self.decays)

    def state(self) -> State:
        numbered_moments = enumerate(self.moments.values())
        return State({f"{i}.{name}": getattr(m, name) for i, m in numbered_moments for name in ("mean", "square")})

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        restore(self.state().tensors, tensors)


adam = Adam
EXAMPLES = {"adam": (Adam(), Adam((0.8, 0.99)))}
