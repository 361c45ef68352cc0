"""Hamilton's equations in steps that conserve volume and can be run backwards."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

TRIALS = 60  # doublings of a step size, or halvings


class Target(Protocol):
    """What K chains sample: where they are, and the energy U there, −log density up to a constant."""

    position: Tensor  # [K, P]
    slope: Tensor  # [K, P]: ∇U where it was evaluated last

    def evaluate(self) -> None:
        """Bring `slope` to the position; without synchronising."""
        ...

    def energy(self) -> Tensor:
        """U [K] where it was evaluated last, in float64; the same."""
        ...


def leapfrog(target: Target, momentum: Tensor, step_size: Tensor, inverse_mass: Tensor, steps: int) -> None:
    """Move positions and momenta [K, P], in place, along a trajectory of `steps` steps.

    p ← p − (ε/2) ∇U(q);  q ← q + ε M⁻¹ p;  p ← p − (ε/2) ∇U(q)

    `target.slope` must be that of the position; `step_size` ε is [K, 1], `inverse_mass` the diagonal of M⁻¹ [P].
    Neal (2011), MCMC using Hamiltonian dynamics, section 5.2.3.
    """
    drift = step_size * inverse_mass
    momentum.sub_(0.5 * step_size * target.slope)
    for step in range(1, steps + 1):
        target.position.addcmul_(drift, momentum)
        target.evaluate()
        momentum.sub_((step_size if step < steps else 0.5 * step_size) * target.slope)


def kinetic(momentum: Tensor, inverse_mass: Tensor) -> Tensor:
    """½ pᵀ M⁻¹ p of each chain [K], in float64."""
    return 0.5 * (momentum.double().square() * inverse_mass.double()).sum(1)


def reasonable_step_size(
    target: Target, energy: Tensor, momentum: Tensor, inverse_mass: Tensor, step_size: Tensor
) -> Tensor:
    """Step sizes [K] at which one leapfrog step is accepted about four times of five; nobody moves.

    Each chain's is doubled, or halved, until its acceptance crosses that. `energy` [K] is that at the position.
    Hoffman & Gelman (2014), The No-U-Turn sampler, algorithm 4.
    """
    position, slope = target.position.clone(), target.slope.clone()
    total = energy + kinetic(momentum, inverse_mass)
    growing: Tensor | None = None
    active = torch.ones_like(energy, dtype=torch.bool)
    for _ in range(TRIALS):
        moved = momentum.clone()
        leapfrog(target, moved, step_size[:, None].to(position), inverse_mass, 1)
        accepted = (total - target.energy() - kinetic(moved, inverse_mass)).nan_to_num(nan=-math.inf) > math.log(0.8)
        target.position.copy_(position)
        target.slope.copy_(slope)
        growing = accepted if growing is None else growing
        active = active & (accepted == growing)
        if not bool(active.any()):
            break
        step_size = torch.where(active, torch.where(growing, 2 * step_size, step_size / 2), step_size)
    return step_size
