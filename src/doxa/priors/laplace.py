"""The Laplace prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from doxa.contracts import Centre
from doxa.errors import require_positive


@dataclass(frozen=True)
class Laplace:
    """Most weights close to their centre, a few far from it: L1 decay as a belief.

    p(w) = exp(−|w − centre| / scale) / (2 scale)

    `centre` is a number, a vector [R], a net or its state dict.
    Williams (1995), Bayesian regularization and pruning using a Laplace prior.
    """

    scale: float = 1.0
    centre: Centre = 0.0

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)

    def log_prob(self, w: Tensor) -> Tensor:
        return -(w - self.centre).abs() / self.scale - math.log(2 * self.scale)

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return (self.centre - w).sign() / self.scale
