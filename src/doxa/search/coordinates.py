"""What a step of learning adds to where it changes a scale: its logarithm, or the variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST = 1e-12  # a variance: a step may overshoot zero, and a scale may not


@dataclass(frozen=True)
class Coordinate:
    """A number c that stands for a scale σ.

    ∂U/∂c = (∂U/∂log σ) / (dc/dlog σ)
    """

    name: str
    of: Callable[[Tensor], Tensor]  # c of σ
    scale: Callable[[Tensor], Tensor]  # σ of c
    slope: Callable[[Tensor], Tensor]  # dc/dlog σ, at σ


log_scale = Coordinate("log_scale", torch.log, torch.exp, torch.ones_like)
"""c = log σ: steps are factors, and no step makes a scale negative."""

variance = Coordinate(
    "variance", torch.square, lambda c: c.clamp_min(SMALLEST).sqrt(), lambda scale: 2 * scale.square()
)
"""c = σ², as the search gradients are first written down; below 1e-12 it is taken as 1e-12.

Wierstra et al. (2014), Natural evolution strategies; Staines & Barber (2013), Optimization by variational bounding.
"""

TABLE = {one.name: one for one in (log_scale, variance)}
