"""Densities whose moments are known, as targets of chains."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.random.keys import seed_of
from doxa.references.sampling import Sampling
from doxa.references.settings import HMCSettings
from doxa.references.transition import Rule, metropolis


class GaussianTarget:
    """U(q) = ½ qᵀ Λ q: N(0, Λ⁻¹)."""

    def __init__(self, covariance: Tensor, chains: int, start: float = 1.0) -> None:
        self.covariance, self.precision = covariance, covariance.inverse()
        source = torch.Generator().manual_seed(0)
        self.position = start * torch.randn(chains, len(covariance), generator=source, dtype=covariance.dtype)
        self.slope = torch.zeros_like(self.position)

    def evaluate(self) -> None:
        self.slope.copy_(self.position @ self.precision)

    def energy(self) -> Tensor:
        return 0.5 * (self.position * (self.position @ self.precision)).sum(1).double()


class QuarticTarget:
    """U(q) = Σ q⁴/4 + q²/2: slopes that are not linear."""

    def __init__(self, position: Tensor) -> None:
        self.position, self.slope = position.clone(), torch.zeros_like(position)
        self.evaluate()

    def evaluate(self) -> None:
        self.slope.copy_(self.position**3 + self.position)

    def energy(self) -> Tensor:
        return (self.position**4 / 4 + self.position**2 / 2).sum(1)


def covariance(dimension: int, correlation: float, widest: float = 1.0) -> Tensor:
    """Equal correlations, and standard deviations from 1 to `widest`."""
    scale = torch.logspace(0, 1, dimension, base=widest, dtype=torch.float64)
    equal = torch.full((dimension, dimension), correlation, dtype=torch.float64).fill_diagonal_(1.0)
    return equal * scale[:, None] * scale


def sample(target: GaussianTarget, rule: Rule = metropolis, **settings: object) -> Sampling:
    """Chains of a target, run to their end."""
    settings = {"seed": 1, "draws": 200, "warmup": 200, "steps": 8} | settings
    seeds = [seed_of((1, "chain", k)) for k in range(len(target.position))]
    sampling = Sampling(target, HMCSettings(**settings), seeds, rule=rule)  # type: ignore[arg-type]
    while not sampling.finished:
        sampling.advance()
    return sampling
