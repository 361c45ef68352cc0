"""What a step of learning adds to where it changes a scale: the variance, or the logarithm of either."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput

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

    def within(self, c: Tensor) -> Tensor:
        """Coordinates that a step has led to, none below that of the smallest scale: what is lower stands for the same.

        Left there, a coordinate would have to come all the way back before its scale could grow again.
        """
        lower_bound = self.of(self.scale(torch.full_like(c, -math.inf)))
        return torch.maximum(c, lower_bound.nan_to_num(nan=-math.inf, neginf=-math.inf))


log_scale = Coordinate("log_scale", torch.log, torch.exp, torch.ones_like)
"""c = log σ: steps are factors, and no step makes a scale negative."""


def _root(c: Tensor) -> Tensor:
    return c.clamp_min(SMALLEST).sqrt()


def _twice_square(scale: Tensor) -> Tensor:
    return 2 * scale.square()


variance = Coordinate("variance", torch.square, _root, _twice_square)
"""c = σ², as the search gradients are first written down; a step below 1e-12 ends at 1e-12.

Wierstra et al. (2014), Natural evolution strategies; Staines & Barber (2013), Optimization by variational bounding.
"""


def _log_variance(scale: Tensor) -> Tensor:
    return 2 * scale.log()


def _scale_of_log_variance(c: Tensor) -> Tensor:
    return (c / 2).exp()


def _twice(scale: Tensor) -> Tensor:
    return torch.full_like(scale, 2.0)


log_variance = Coordinate("log_variance", _log_variance, _scale_of_log_variance, _twice)
"""c = log σ²: twice log σ, so that a plain gradient is half as long, and moves σ a quarter as far.

Staines & Barber (2013), Optimization by variational bounding.
"""

TABLE = {coordinate.name: coordinate for coordinate in (log_scale, variance, log_variance)}


def require_coordinate(value: Any) -> Coordinate:
    """The coordinate that was asked for, or what is wrong with it."""
    if not isinstance(value, Coordinate):
        names = " or ".join(f"doxa.search.{name}" for name in TABLE)
        raise BadInput(
            f"coordinate must be {names}, or another doxa.search.distribution.coordinates.Coordinate; got {value!r}"
        )
    return value
