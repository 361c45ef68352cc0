"""The Gaussian prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Centre
from doxa.errors import require_centre, require_positive, require_size


@dataclass(frozen=True)
class Gaussian:
    """Weights near their centre, with a typical distance: weight decay as a belief.

    p(w) = N(w; centre, scale²)

    `scale` is a number or one per random weight [R]; `centre` a number, a vector [R], a net or its state dict.
    MacKay (1992), A practical Bayesian framework for backpropagation networks.
    """

    scale: float | Tensor = 1.0
    centre: Centre = 0.0

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)
        require_size("scale", self.scale)
        require_centre(self.centre)

    def log_prob(self, w: Tensor) -> Tensor:
        scale = w.new_tensor(self.scale) if isinstance(self.scale, float | int) else self.scale
        return -0.5 * ((w - self.centre) / scale).square() - scale.log() - 0.5 * math.log(2 * math.pi)

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return (self.centre - w) / self.scale**2

    def kl_from_gaussian(self, mean: Tensor, scale: Tensor, log_scale: Tensor) -> Tensor:
        """log(scale_p/scale) + (scale² + (mean − centre)²) / (2 scale_p²) − ½"""
        prior_scale = torch.as_tensor(self.scale, dtype=mean.dtype, device=mean.device)
        square = scale.square() + (mean - self.centre).square()
        return prior_scale.log() - log_scale + square / (2 * prior_scale.square()) - 0.5

    def add_kl_slopes(
        self, mean: Tensor, scale: Tensor, weight: float | Tensor, by_mean: Tensor, by_scale: Tensor
    ) -> None:
        by_mean += weight * (mean - self.centre) * self.scale**-2
        by_scale += weight * scale * self.scale**-2


gaussian = Gaussian
EXAMPLES = {"gaussian": (Gaussian(0.7), Gaussian(0.1), Gaussian(3.0))}
