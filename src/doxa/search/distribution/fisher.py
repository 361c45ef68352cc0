"""How far apart two search distributions are, to second order."""

from __future__ import annotations

from torch import Tensor

from doxa.search.distribution.gaussian import SearchDistribution


def fisher(distribution: SearchDistribution) -> tuple[Tensor, Tensor]:
    """The diagonal of the Fisher information of a Gaussian by its mean [P] and by its log scales [G]; it has no rest.

    F = E[∇log p ∇log pᵀ]:  1/scale² for a mean, 2 d_g for the log of a scale that d_g weights share

    By the variance σ² this is d_g/(2σ⁴). KL(p_θ‖p_θ+Δ) ≈ ½ Δᵀ F Δ.
    Wierstra et al. (2014), Natural evolution strategies.
    """
    return distribution.scales.square().reciprocal(), 2 * distribution.counts
