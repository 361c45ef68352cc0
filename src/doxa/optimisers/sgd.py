"""Stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Now, Training
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

    def start(self, training: Training) -> SgdAtWork:
        return SgdAtWork(self, training)


class SgdAtWork:
    """Gradient descent with the momentum of every parameter."""

    def __init__(self, settings: Sgd, training: Training) -> None:
        self.settings, self.training = settings, training
        self.velocity = [torch.zeros_like(p) for p in training.parameters] if settings.momentum else []

    def corrections(self, number: int) -> tuple[float, float]:
        """None that it would need."""
        return 1.0, 1.0

    @torch.no_grad()
    def step(self, now: Now, rates: Tensor, corrections: tuple[float, float] | Tensor) -> None:
        self.training.fill_gradients(now)
        rate, awake = rates[:, None], (rates >= 0)[:, None]  # a negative one rests
        for i, p in enumerate(self.training.parameters):
            assert p.grad is not None
            along = p.grad
            if self.velocity:
                new = self.velocity[i] * self.settings.momentum + p.grad
                along = self.velocity[i].copy_(torch.where(awake, new, self.velocity[i]))
            p.sub_(torch.where(awake, rate * along, 0))

    def state(self) -> dict[str, Tensor]:
        return {f"{i}.velocity": v for i, v in enumerate(self.velocity)}
