"""How far Adam moves a scale in an epoch whose first minibatches pay the KL: worked out, without a net."""

from __future__ import annotations

import math

from doxa.optimisers import adam

BETA_1, BETA_2 = adam().betas


def drift(minibatches: int, epochs: int) -> list[float]:
    """How many learning rates Adam has moved ρ by after each epoch if the KL alone pulls, step by step from the first.

    It settles to `kl_weights.geometric().growth(minibatches)` an epoch.
    """
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
