"""Adam."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from doxa.contracts import Now, Training
from doxa.errors import BadInput, require_positive
from doxa.flat import Moments, Pace


@dataclass(frozen=True)
class Adam:
    """Steps of about the learning rate in every direction, whatever the size of the gradient.

    x ← x − rate · m̂ / (√v̂ + small),  m and v running means of the gradient and of its square

    The step of a belief is taken in the same pass over memory that finishes its gradients.
    Kingma & Ba (2015), Adam: a method for stochastic optimization.
    """

    first: float = 0.9
    second: float = 0.999
    small: float = 1e-8

    def __post_init__(self) -> None:
        for name, decay in (("first", self.first), ("second", self.second)):
            if not 0 <= decay < 1:
                raise BadInput(f"{name} must lie between 0 and 1, 1 excluded; got {decay}")
        require_positive("small", self.small)

    def start(self, training: Training) -> AdamAtWork:
        return AdamAtWork(self, training)


class AdamAtWork:
    """Adam with what it remembers of every parameter."""

    def __init__(self, settings: Adam, training: Training) -> None:
        self.settings, self.training = settings, training
        self.moments = [Moments.of(p.detach()) for p in training.parameters]

    def corrections(self, number: int) -> tuple[float, float]:
        """What the start has left of both moments at a step, counted from 1."""
        return 1 - self.settings.first**number, 1 - self.settings.second**number

    def step(self, now: Now, rates: Tensor, corrections: tuple[float, float] | Tensor) -> None:
        s = self.settings
        self.training.descend(now, Pace(rates, corrections, s.first, s.second, s.small), self.moments)

    def state(self) -> dict[str, Tensor]:
        names = (("mean", "square"),) * len(self.moments)
        return {f"{i}.{n}": getattr(m, n) for i, m in enumerate(self.moments) for n in names[i]}
