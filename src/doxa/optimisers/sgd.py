"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Schedule
from doxa.engine.context import StepContext
from doxa.engine.contracts import Gradient, State
from doxa.engine.recipes import empty_gradients, group_indices, materialised
from doxa.engine.states import restore
from doxa.errors import BadInput


@dataclass(frozen=True)
class Sgd:
    """Steps along the gradient, with a memory of earlier ones.

    v ← momentum · v + g,  x ← x − rate · v

    Polyak (1964), Some methods of speeding up the convergence of iteration methods.
    """

    momentum: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise BadInput(f"momentum must lie between 0 and 1, 1 excluded; got {self.momentum}")

    def start(self, gradient: Gradient) -> SgdStepper:
        """Gradient descent for a gradient's parameters."""
        return SgdStepper(self, gradient)


class SgdStepper:
    """Gradient descent with the momentum of every parameter."""

    eager = None

    def __init__(self, settings: Sgd, gradient: Gradient) -> None:
        self.settings = settings
        self.values = {p.name: p.values for p in gradient.parameters}
        self.gradients = empty_gradients(gradient)
        self.velocity = {n: torch.zeros_like(v) for n, v in self.values.items()} if settings.momentum else {}
        _, self.groups = group_indices(gradient)

    def schedules(self) -> dict[str, Sequence[Schedule]]:
        return {}

    def numbers(self, count: int) -> tuple[float, ...]:
        return ()

    @torch.no_grad()
    def step(self, gradient: Gradient, context: StepContext) -> None:
        materialised(gradient, context, self.gradients)
        rates = [(net_rates[:, None], context.active(group)) for group, net_rates in enumerate(context.rates)]
        for name, values in self.values.items():
            (rate, awake), direction = rates[self.groups[name]], self.gradients[name]
            if self.velocity:
                velocity = self.velocity[name]
                new_velocity = velocity * self.settings.momentum + direction
                direction = velocity.copy_(torch.where(awake, new_velocity, velocity))
            values.sub_(torch.where(awake, rate * direction, 0))

    def state(self) -> State:
        return State({f"{i}.velocity": v for i, v in enumerate(self.velocity.values())})

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        restore(self.state().tensors, tensors)


sgd = Sgd
EXAMPLES = {"sgd": (Sgd(), Sgd(0.9))}
