"""How far Adam moves a scale in an epoch whose first minibatches pay the KL: worked out, without a net."""

from __future__ import annotations

import math

from doxa.optimisers import adam

BETA_1, BETA_2 = adam().betas


def growth(minibatches: int) -> float:
    """By how many learning rates Adam moves ρ in an epoch of M minibatches if the KL alone pulls, by halving shares.

    Σ_k 2⁻ᵏ g / √v = 2 √(3 (1 − β₂ᴹ) / (4 (1 − β₂))),  v just after the first minibatches

    The slopes of an epoch are g, g/2, g/4 …; their squares add up to 4/3 g². v keeps β₂ᴹ of itself from one epoch to
    the next, so that it stands at (1 − β₂) 4/3 g² / (1 − β₂ᴹ) when they have been paid. g, and with it the KL weight,
    the size of the data and the prior, drop out. Kingma & Ba (2015), Adam: a method for stochastic optimization.
    """
    return 2 * math.sqrt(0.75 * (1 - BETA_2**minibatches) / (1 - BETA_2))


def drift(minibatches: int, epochs: int) -> list[float]:
    """The same step by step from the first on, in learning rates: where ρ stands after each epoch, less its start."""
    m = v = moved = 0.0
    after = []
    for step in range(1, epochs * minibatches + 1):
        slope = math.ldexp(1.0, -((step - 1) % minibatches))
        m, v = BETA_1 * m + (1 - BETA_1) * slope, BETA_2 * v + (1 - BETA_2) * slope**2
        moved += m / (1 - BETA_1**step) / math.sqrt(v / (1 - BETA_2**step))
        if step % minibatches == 0:
            after.append(moved)
    return after


def scale_after(rho: float, rate: float, minibatches: int, epochs: int) -> float:
    """The scale that a weight which the data do not hold back ends at: softplus(ρ + rate · drift)."""
    return math.log1p(math.exp(rho + rate * drift(minibatches, epochs)[-1]))
