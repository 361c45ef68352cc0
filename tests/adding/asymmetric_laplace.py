"""The asymmetric Laplace prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Centre
from doxa.errors import require_positive


@dataclass(frozen=True)
class AsymmetricLaplace:
    """Weights close to their centre, with a distance of their own on either side of it.

    p(w) = exp(−d⁺/above − d⁻/below) / (above + below),  d = w − centre

    `centre` is a number, a vector [R], a net or its state dict.
    Kotz, Kozubowski & Podgórski (2001), The Laplace distribution and generalizations, chapter 3.
    """

    below: float = 1.0
    above: float = 1.0
    centre: Centre = 0.0

    def __post_init__(self) -> None:
        require_positive("below", self.below)
        require_positive("above", self.above)

    def log_prob(self, w: Tensor) -> Tensor:
        distance = w - self.centre
        cost = torch.where(distance > 0, distance / self.above, -distance / self.below)
        return -cost - math.log(self.below + self.above)

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return torch.where(w > self.centre, w.new_tensor(-1 / self.above), w.new_tensor(1 / self.below))

    def kl_from_gaussian(self, mean: Tensor, scale: Tensor, log_scale: Tensor) -> Tensor:
        """log(above + below) + E[d⁺]/above + E[d⁻]/below − ½ log(2πe scale²)."""
        distance = mean - self.centre
        z = distance / scale.clamp_min(torch.finfo(scale.dtype).tiny)
        above = distance * torch.special.ndtr(z) + scale * (-0.5 * z.square()).exp() / math.sqrt(2 * math.pi)
        below = above - distance
        cost = math.log(self.below + self.above) + above / self.above + below / self.below
        return cost - log_scale - 0.5 * math.log(2 * math.pi * math.e)

    def add_kl_slopes(
        self, mean: Tensor, scale: Tensor, weight: float | Tensor, by_mean: Tensor, by_scale: Tensor
    ) -> None:
        z = (mean - self.centre) / scale
        by_mean += weight * (torch.special.ndtr(z) / self.above - torch.special.ndtr(-z) / self.below)
        density = (-0.5 * z.square()).exp() / math.sqrt(2 * math.pi)
        by_scale += weight * density * (1 / self.above + 1 / self.below)


asymmetric_laplace = AsymmetricLaplace
EXAMPLES = {
    "asymmetric_laplace": (AsymmetricLaplace(0.1, 0.3), AsymmetricLaplace(1.0, 0.2), AsymmetricLaplace(3.0, 3.0))
}
