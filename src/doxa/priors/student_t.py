"""The Student-t prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from doxa.contracts import Centre
from doxa.errors import require_centre, require_positive_number, require_size


@dataclass(frozen=True)
class StudentT:
    """A Gaussian whose variance is itself uncertain: heavy tails that let a few weights be large.

    p(w) = Γ((ν+1)/2) / (Γ(ν/2) √(νπ) scale) · (1 + z²/ν)^(−(ν+1)/2),  z = (w − centre) / scale

    `degrees` is ν; `centre` a number, a vector [R], a net or its state dict.
    Fortuin et al. (2022), Bayesian neural network priors revisited.
    """

    degrees: float = 3.0
    scale: float = 1.0
    centre: Centre = 0.0

    def __post_init__(self) -> None:
        require_positive_number("degrees", self.degrees)
        require_positive_number("scale", self.scale)
        require_size("degrees", self.degrees)
        require_size("scale", self.scale)
        require_centre(self.centre)

    def log_prob(self, w: Tensor) -> Tensor:
        nu = self.degrees
        constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi) - math.log(self.scale)
        return constant - (nu + 1) / 2 * ((w - self.centre) / self.scale).square().div(nu).log1p()

    def grad_log_prob(self, w: Tensor) -> Tensor:
        distance = w - self.centre
        return -(self.degrees + 1) * distance / (self.degrees * self.scale**2 + distance.square())


student_t = StudentT
EXAMPLES = {"student_t": (StudentT(4.0, 0.5), StudentT(3.0, 0.1), StudentT(3.0, 3.0))}
