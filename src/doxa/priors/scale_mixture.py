"""The scale mixture of two Gaussians."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Centre
from doxa.errors import BadInput, require_centre, require_positive_number, require_size
from doxa.flat import mixture_slope


@dataclass(frozen=True)
class ScaleMixture:
    """A wide Gaussian for the weights that matter and a narrow spike for those that do not.

    p(w) = π N(w; centre, wide²) + (1 − π) N(w; centre, narrow²)

    `share` is π; `centre` a number, a vector [R], a net or its state dict.
    Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    share: float = 0.5
    wide: float = 1.0
    narrow: float = math.exp(-7)
    centre: Centre = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise BadInput(
                f"share must lie strictly between 0 and 1, got {self.share}; use priors.gaussian for one part"
            )
        require_positive_number("wide", self.wide)
        require_positive_number("narrow", self.narrow)
        require_size("wide", self.wide)
        require_size("narrow", self.narrow)
        require_centre(self.centre)
        if self.narrow >= self.wide:
            raise BadInput(f"narrow ({self.narrow}) must be smaller than wide ({self.wide})")

    def log_prob(self, w: Tensor) -> Tensor:
        square = (w - self.centre).square()
        wide = math.log(self.share) - math.log(self.wide) - square / (2 * self.wide**2)
        narrow = math.log1p(-self.share) - math.log(self.narrow) - square / (2 * self.narrow**2)
        return torch.logaddexp(wide, narrow) - 0.5 * math.log(2 * math.pi)

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return mixture_slope(w, self.centre, self.wide**-2, self.narrow**-2, self.odds)

    @property
    def odds(self) -> float:
        """How much more likely the wide Gaussian is than the narrow one at the centre, in logarithms."""
        return math.log(self.share / (1 - self.share)) + math.log(self.narrow / self.wide)


scale_mixture = ScaleMixture
EXAMPLES = {
    "scale_mixture": (
        ScaleMixture(0.25, 1.0, math.exp(-6)),
        ScaleMixture(0.5, 1.0, 0.01),
        ScaleMixture(0.75, 1.0, 0.05),
    )
}
