"""Kernel estimates of a prior's density from draws, as the authors drew figures 2 and 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Prior
from doxa.priors import gaussian, laplace, scale_mixture
from doxa_replicate.contract import ReplicationOptions

DRAWS, REACH, GRID = 100_000, 2.0, 10_000  # the authors' own: draws, and points from −REACH to REACH
SEEDS = 10
POINTS_AT_ONCE = 64


@dataclass(frozen=True)
class KernelEstimate:
    """A Gaussian about every draw: (1/n) Σᵢ N(w; drawᵢ, bandwidth²).

    bandwidth = s n^(−1/5), s the standard deviation of the draws: Scott (1992), Multivariate density estimation.
    It is the default of SciPy, made for densities that are themselves about Gaussian.
    """

    draws: Tensor  # [n], float64

    @property
    def bandwidth(self) -> float:
        return float(self.draws.std()) * len(self.draws) ** -0.2

    def density(self, w: Tensor) -> Tensor:
        """At points [B]."""
        norm = self.bandwidth * math.sqrt(2 * math.pi)
        return torch.cat(
            [
                ((points[:, None] - self.draws) / self.bandwidth).square_().mul_(-0.5).exp_().mean(1) / norm
                for points in w.double().split(POINTS_AT_ONCE)
            ]
        )

    def within(self, distance: float) -> float:
        """The probability that |w| is at most so much."""
        upper, lower = ((edge - self.draws) / self.bandwidth for edge in (distance, -distance))
        return float((torch.special.ndtr(upper) - torch.special.ndtr(lower)).mean())

    def peak(self) -> float:
        """The largest density near zero, on the authors' grid."""
        grid = torch.linspace(-REACH, REACH, GRID, dtype=torch.float64)
        return float(self.density(grid[grid.abs() < self.bandwidth / 2]).max())


Sampler = Callable[[Prior, int, torch.Generator], Tensor]


def _normals(count: int, source: torch.Generator) -> Tensor:
    return torch.randn(count, generator=source, dtype=torch.float64)


def _uniforms(count: int, source: torch.Generator) -> Tensor:
    return torch.rand(count, generator=source, dtype=torch.float64)


def _draw_gaussian(prior: Prior, count: int, source: torch.Generator) -> Tensor:
    assert isinstance(prior, gaussian)
    return prior.scale * _normals(count, source)


def _draw_mixture(prior: Prior, count: int, source: torch.Generator) -> Tensor:
    assert isinstance(prior, scale_mixture)
    scales = torch.where(_uniforms(count, source) < prior.share, prior.wide, prior.narrow)
    return scales * _normals(count, source)


def _draw_laplace(prior: Prior, count: int, source: torch.Generator) -> Tensor:
    assert isinstance(prior, laplace)
    signed = _uniforms(count, source) - 0.5
    return -prior.scale * signed.sign() * torch.log1p(-2 * signed.abs())


SAMPLERS: Mapping[type, Sampler] = {gaussian: _draw_gaussian, scale_mixture: _draw_mixture, laplace: _draw_laplace}


def estimate(prior: Prior, seed: int, options: ReplicationOptions) -> KernelEstimate:
    """Of draws of a prior: as many as the authors took, at full size."""
    source = torch.Generator().manual_seed(seed)
    return KernelEstimate(SAMPLERS[type(prior)](prior, int(options.by_size(2000, DRAWS)), source))


def seeds_of(options: ReplicationOptions) -> list[int]:
    """One sample of draws for each."""
    return options.seed_list(2, SEEDS)
