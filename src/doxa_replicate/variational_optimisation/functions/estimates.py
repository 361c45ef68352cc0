"""Slopes of a search, estimated many times over from the noise of the search itself: what they are, how they vary."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from doxa.search.distribution.coordinates import variance
from doxa.search.distribution.gaussian import SearchDistribution, scores
from doxa.search.functions import himmelblau
from doxa.search.perturbations.population import make_population

Function = Callable[[Tensor], Tensor]  # of vectors [..., d]
QUADRATURE_NODES = 40  # of Gauss-Hermite quadrature: exact for polynomials of degree 79
VARIANCE_BLOCKS = 20  # of estimates, between which a measured variance varies
SECTION_POINT = 1.0  # where the section is taken


def section(w: Tensor) -> Tensor:
    """Himmelblau's function along y = 2: (x² − 9)² + (x − 3)² for x [..., 1]."""
    return himmelblau(torch.cat([w, torch.full_like(w, 2.0)], -1))


def section_slope(x: float) -> float:
    """Its derivative."""
    return 4 * x * (x * x - 9) + 2 * (x - 3)


@dataclass(frozen=True)
class MeasuredVariance:
    """A variance, and its standard error."""

    value: float
    error: float


def isotropic_gaussian(mean: Tensor, scale: float) -> SearchDistribution:
    """One scale for all of a vector."""
    return SearchDistribution(mean, mean.new_tensor([scale]), (len(mean),))


def gradient_terms(f: Function, distribution: SearchDistribution, epsilon: Tensor) -> Tensor:
    """f(w) ∇log p(w) for rows of noise [..., d]: by the mean, and last by σ² [..., d + 1]."""
    rows = epsilon.reshape(-1, epsilon.shape[-1])
    by_mean, by_log = scores(distribution, rows)
    scores_by_coordinate = torch.cat([by_mean, by_log / variance.slope(distribution.scale)], 1)
    return (f(distribution.mean + distribution.scales * rows)[:, None] * scores_by_coordinate).view(
        *epsilon.shape[:-1], -1
    )


def gradient_estimates(
    f: Function, distribution: SearchDistribution, size: int, antithetic: bool, repeats: int, seed: int
) -> Tensor:
    """So many estimates of ∂U/∂mean and ∂U/∂σ² from N draws each, independent or in mirrored pairs [repeats, d + 1]."""
    draws, d = make_population(size, antithetic, (seed, "estimates")), len(distribution.mean)
    estimates, block_size = [], max(1, (1 << 22) // (size * d))
    for generation, low in enumerate(range(0, repeats, block_size)):
        count = min(block_size, repeats - low)
        noise = draws.noise(generation, slice(0, draws.units), distribution.mean.new_empty(count * d))
        epsilon = draws.mirror(torch.zeros_like(noise[:1]), noise).view(size, count, d)
        estimates.append(gradient_terms(f, distribution, epsilon).mean(0))
    return torch.cat(estimates)


def column_variances(estimates: Tensor) -> list[MeasuredVariance]:
    """How each column of many estimates [repeats, k] varies."""
    block_variances = torch.stack([block.var(0) for block in estimates.tensor_split(VARIANCE_BLOCKS)])
    error = block_variances.std(0) / math.sqrt(VARIANCE_BLOCKS)
    return [MeasuredVariance(float(v), float(e)) for v, e in zip(estimates.var(0), error, strict=True)]


def exact_variances(f: Function, distribution: SearchDistribution) -> tuple[Tensor, Tensor]:
    """Var[g] of one term, and Var[g_e] of its even part, by mean and by σ², in one dimension; by quadrature.

    g_e(μ + σε) = ½ (g(μ + σε) + g(μ − σε))
    """
    points, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
    mass = torch.from_numpy(weights / weights.sum())[:, None]
    epsilon = torch.from_numpy(points)[:, None]
    terms_of, mirrored_terms = gradient_terms(f, distribution, epsilon), gradient_terms(f, distribution, -epsilon)

    def var(values: Tensor) -> Tensor:
        mean = (mass * values).sum(0)
        return (mass * (values - mean).square()).sum(0)

    return var(terms_of), var((terms_of + mirrored_terms) / 2)
