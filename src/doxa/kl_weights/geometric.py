"""Blundell's weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

from doxa.contracts import Moment
from doxa.errors import BadInput, require_whole


@dataclass(frozen=True)
class Geometric:
    """The first minibatches of an epoch pay nearly all of the KL, each half as much as the one before.

    weight = M · 2^(M−i) / (2^M − 1),  that is β_i = weight / M;  i = 1 … M in each epoch, Σ_i β_i = 1

    Blundell et al. (2015), Weight uncertainty in neural networks, section 3.4.
    """

    def __call__(self, moment: Moment) -> float:
        # Both sides of the fraction divided by 2^M: late terms may vanish, but none overflows for any M.
        return math.ldexp(moment.batches, -(moment.batch + 1)) / (1 - math.ldexp(1.0, -moment.batches))

    def growth(self, batches: int, beta_2: float = 0.999) -> float:
        """By how many learning rates Adam moves ρ in an epoch of M minibatches where the KL alone pulls.

        Σ_k 2⁻ᵏ g / √v = 2 √(3 (1 − β₂ᴹ) (1 − 2⁻ᴹ) / (4 (1 − β₂) (1 + 2⁻ᴹ))),  v just after the first minibatches

        The M slopes of an epoch are g, g/2, g/4 …: 2g (1 − 2⁻ᴹ) together, and 4/3 g² (1 − 4⁻ᴹ) their squares. v keeps
        β₂ᴹ of itself from one epoch to the next, so that it stands at (1 − β₂) / (1 − β₂ᴹ) times the squares when they
        have been paid. g, and with it the KL weight, the size of the data and the prior, drop out.
        Kingma & Ba (2015), Adam: a method for stochastic optimization.
        """
        last = math.ldexp(1.0, -require_whole("batches", batches))
        if not 0 <= beta_2 < 1:
            raise BadInput(f"beta_2 must lie between 0 and 1, 1 excluded; got {beta_2!r}")
        return 2 * math.sqrt(0.75 * (1 - beta_2**batches) / (1 - beta_2) * (1 - last) / (1 + last))


geometric = Geometric
EXAMPLES = {"geometric": (Geometric(),)}
