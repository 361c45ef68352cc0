"""Slopes of a search, estimated many times over from the noise of the search itself: what they are, how they vary."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from doxa.search.distribution.coordinates import variance
from doxa.search.distribution.gaussian import Gaussian, scores
from doxa.search.functions import himmelblau
from doxa.search.perturbations.population import population

Function = Callable[[Tensor], Tensor]  # of vectors [..., d]
NODES = 40  # of Gauss-Hermite quadrature: exact for polynomials of degree 79
BLOCKS = 20  # of estimates, between which a measured variance varies
AT = 1.0  # where the section is taken


def section(w: Tensor) -> Tensor:
    """Himmelblau's function along y = 2: (x² − 9)² + (x − 3)² for x [..., 1]."""
    return himmelblau(torch.cat([w, torch.full_like(w, 2.0)], -1))


def slope_at(x: float) -> float:
    """Its derivative."""
    return 4 * x * (x * x - 9) + 2 * (x - 3)


@dataclass(frozen=True)
class Measured:
    """A variance, and its standard error."""

    value: float
    error: float


def gaussian(mean: Tensor, scale: float) -> Gaussian:
    """One scale for all of a vector."""
    return Gaussian(mean, mean.new_tensor([scale]), (len(mean),))


def terms(f: Function, at: Gaussian, epsilon: Tensor) -> Tensor:
    """f(w) ∇log p(w) for rows of noise [..., d]: by the mean, and last by σ² [..., d + 1]."""
    rows = epsilon.reshape(-1, epsilon.shape[-1])
    by_mean, by_log = scores(at, rows)
    both = torch.cat([by_mean, by_log / variance.slope(at.scale)], 1)
    return (f(at.mean + at.scales * rows)[:, None] * both).view(*epsilon.shape[:-1], -1)


def slopes(f: Function, at: Gaussian, size: int, antithetic: bool, repeats: int, seed: int) -> Tensor:
    """So many estimates of ∂U/∂mean and ∂U/∂σ² from N draws each, independent or in mirrored pairs [repeats, d + 1]."""
    asked, d = population(size, antithetic, (seed, "estimates")), len(at.mean)
    found, most = [], max(1, (1 << 22) // (size * d))
    for generation, low in enumerate(range(0, repeats, most)):
        many = min(most, repeats - low)
        wide = asked.noise(generation, slice(0, asked.units), at.mean.new_empty(many * d))
        epsilon = asked.mirrored(torch.zeros_like(wide[:1]), wide).view(size, many, d)
        found.append(terms(f, at, epsilon).mean(0))
    return torch.cat(found)


def varied(estimates: Tensor) -> list[Measured]:
    """How each column of many estimates [repeats, k] varies."""
    parts = torch.stack([part.var(0) for part in estimates.tensor_split(BLOCKS)])
    error = parts.std(0) / math.sqrt(BLOCKS)
    return [Measured(float(v), float(e)) for v, e in zip(estimates.var(0), error, strict=True)]


def exactly(f: Function, at: Gaussian) -> tuple[Tensor, Tensor]:
    """Var[g] of one term, and Var[g_e] of its even part, by mean and by σ², in one dimension; by quadrature.

    g_e(μ + σε) = ½ (g(μ + σε) + g(μ − σε))
    """
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    mass = torch.from_numpy(weights / weights.sum())[:, None]
    epsilon = torch.from_numpy(points)[:, None]
    one, mirrored = terms(f, at, epsilon), terms(f, at, -epsilon)

    def var(of: Tensor) -> Tensor:
        mean = (mass * of).sum(0)
        return (mass * (of - mean).square()).sum(0)

    return var(one), var((one + mirrored) / 2)
