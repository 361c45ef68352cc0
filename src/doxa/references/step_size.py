"""Step sizes that reach an acceptance which was asked for."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from doxa.engine.states import restore

# How hard it pulls towards ten times the first step, how little the first ones say, how fast they are forgotten.
SHRINKAGE, DELAY, FORGETTING = 0.05, 10.0, 0.75


class DualAveraging:
    """A step size for each of K chains, moved until its mean acceptance is `acceptance`.

    log ε ← μ − (√t / γ) H̄,  H̄ the mean of (acceptance − accepted), early ones weighing less;  μ = log 10 ε₁

    Each chain is by itself, as it is in a fleet. `averaged` is what to go on with: the steps' mean in logarithms, late
    ones weighing more. Hoffman & Gelman (2014), The No-U-Turn sampler, section 3.2; Nesterov (2009).
    """

    def __init__(self, step_size: Tensor, acceptance: float) -> None:
        self.acceptance = acceptance
        self.log_step = step_size.double().log()
        self.centre = self.log_step + math.log(10)
        self.log_averaged, self.error = self.log_step.clone(), torch.zeros_like(self.log_step)
        self.count = torch.zeros_like(self.log_step)

    @property
    def step_size(self) -> Tensor:
        """Of the next trajectory [K]."""
        return self.log_step.exp()

    @property
    def averaged(self) -> Tensor:
        """What the steps have come to [K]."""
        return self.log_averaged.exp()

    def restart(self, step_size: Tensor) -> None:
        """Begin again from another step size [K]."""
        fresh = DualAveraging(step_size, self.acceptance)
        restore(self.tensors(), fresh.tensors())

    def update(self, accepted: Tensor) -> None:
        """Take note of the acceptance probabilities [K] of a trajectory."""
        self.count += 1
        share = 1 / (self.count + DELAY)
        self.error.copy_((1 - share) * self.error + share * (self.acceptance - accepted))
        self.log_step.copy_(self.centre - self.count.sqrt() / SHRINKAGE * self.error)
        late = self.count**-FORGETTING
        self.log_averaged.copy_(late * self.log_step + (1 - late) * self.log_averaged)

    def tensors(self) -> dict[str, Tensor]:
        """All that it remembers, at addresses that do not change."""
        names = ("log_step", "centre", "log_averaged", "error", "count")
        return {name: getattr(self, name) for name in names}
