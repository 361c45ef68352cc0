"""The Laplace prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Centre
from doxa.errors import require_centre, require_positive_number, require_size


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
        require_positive_number("scale", self.scale)
        require_size("scale", self.scale)
        require_centre(self.centre)

    def log_prob(self, w: Tensor) -> Tensor:
        return -(w - self.centre).abs() / self.scale - math.log(2 * self.scale)

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return (self.centre - w).sign() / self.scale

    def kl_from_gaussian(self, mean: Tensor, scale: Tensor, log_scale: Tensor) -> Tensor:
        """log 2b + E|w − centre|/b − ½ log(2πe scale²): the mean of a folded normal, and a Gaussian's entropy."""
        distance = mean - self.centre
        z = distance / scale.clamp_min(torch.finfo(scale.dtype).tiny)
        folded = scale * math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp() + distance * torch.erf(z / math.sqrt(2))
        return math.log(2 * self.scale) + folded / self.scale - log_scale - 0.5 * math.log(2 * math.pi * math.e)

    def add_kl_slopes(
        self, mean: Tensor, scale: Tensor, weight: float | Tensor, by_mean: Tensor, by_scale: Tensor
    ) -> None:
        z = (mean - self.centre) / scale.clamp_min(torch.finfo(scale.dtype).tiny)
        by_mean += torch.erf(z * math.sqrt(0.5)).mul_(weight / self.scale)
        by_scale += z.square_().mul_(-0.5).exp_().mul_(weight * math.sqrt(2 / math.pi) / self.scale)


laplace = Laplace
EXAMPLES = {"laplace": (Laplace(0.15), Laplace(1.0), Laplace(3.0))}
