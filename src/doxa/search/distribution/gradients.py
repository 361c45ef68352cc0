"""GRADIENT: which way a step goes, given the slopes of the objective. To add one: a function and a line in TABLE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, require_positive
from doxa.search.distribution.coordinates import Coordinate
from doxa.search.distribution.fisher import fisher
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes

# From slopes, where they were taken and the coordinate of the scales to what an optimiser is given: by mean, by scale.
Gradient = Callable[[SearchSlopes, SearchDistribution, Coordinate], tuple[Tensor, Tensor]]


def plain(slopes: SearchSlopes, distribution: SearchDistribution, coordinate: Coordinate) -> tuple[Tensor, Tensor]:
    """The gradient itself.

    (∂U/∂mean, ∂U/∂c)

    As a scale falls towards zero, it grows without bound. Williams (1992), Simple statistical gradient-following
    algorithms for connectionist reinforcement learning.
    """
    return slopes.by_mean, slopes.by_log_scale / coordinate.slope(distribution.scale)


@dataclass(frozen=True)
class Natural:
    """The direction of steepest descent where distance is measured by the KL divergence.

    Δ ∝ F⁻¹ ∇U:  (scale² ∂U/∂mean, (1/2d) ∂U/∂log scale)

    With `kl`, a number κ, the step solves min_Δ ∇Uᵀ Δ with ½ Δᵀ F Δ = κ:  Δ = −√(2κ / ∇Uᵀ F⁻¹ ∇U) F⁻¹ ∇U; an optimiser
    that takes plain steps of rate 1 then goes this far and no further.
    Amari (1998), Natural gradient works efficiently in learning; Wierstra et al. (2014).
    """

    kl: float | None = None

    def __post_init__(self) -> None:
        if self.kl is not None:
            require_positive("kl", self.kl)

    def __call__(
        self, slopes: SearchSlopes, distribution: SearchDistribution, coordinate: Coordinate
    ) -> tuple[Tensor, Tensor]:
        mean_information, log_scale_information = fisher(distribution)
        by_mean, by_log = slopes.by_mean / mean_information, slopes.by_log_scale / log_scale_information
        if self.kl is not None:
            decrement = slopes.by_mean @ by_mean + slopes.by_log_scale @ by_log
            # Apart, neither root is infinite: where there is no slope, there is no step.
            length = (2 * self.kl) ** 0.5 * decrement.clamp_min(torch.finfo(decrement.dtype).tiny).rsqrt()
            by_mean, by_log = length * by_mean, length * by_log
        return by_mean, by_log * coordinate.slope(distribution.scale)


natural = Natural()

TABLE: dict[str, Gradient] = {"plain": plain, "natural": natural}


def require_gradient(gradient: Any) -> Gradient:
    """The gradient that was asked for, or what is wrong with it."""
    if not callable(gradient):
        raise BadInput(
            "gradient must be one of doxa.search: natural, plain, natural_within(kl), or a function of slopes, where "
            f"they were taken and the coordinate of the scales; got {gradient!r}"
        )
    function: Gradient = gradient
    return function
