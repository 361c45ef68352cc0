"""Blundell's weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

from doxa.contracts import Moment


@dataclass(frozen=True)
class Geometric:
    """The first minibatches of an epoch pay nearly all of the KL, each half as much as the one before.

    weight = M · 2^(M−i) / (2^M − 1),  that is β_i = weight / M;  i = 1 … M in each epoch, Σ_i β_i = 1

    Blundell et al. (2015), Weight uncertainty in neural networks, section 3.4.
    """

    def __call__(self, moment: Moment) -> float:
        # Both sides of the fraction divided by 2^M: late terms may vanish, but none overflows for any M.
        return math.ldexp(moment.batches, -(moment.batch + 1)) / (1 - math.ldexp(1.0, -moment.batches))


geometric = Geometric
EXAMPLES = {"geometric": (Geometric(),)}
