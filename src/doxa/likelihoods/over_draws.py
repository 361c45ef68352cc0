"""Averages over draws [S, ·], each draw with its weight [S]; None weighs them alike."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def mean(values: Tensor, weights: Tensor | None = None) -> Tensor:
    """Σₛ wₛ vₛ / Σₛ wₛ."""
    if weights is None:
        return values.mean(0)
    return torch.tensordot(_shares(weights, values), values, dims=1)


def std(values: Tensor, weights: Tensor | None = None) -> Tensor:
    """√(Σₛ wₛ (vₛ − mean)² / Σₛ wₛ): of the draws themselves, not of what they were drawn from."""
    if weights is None:
        return values.std(0, correction=0)
    return mean((values - mean(values, weights)).square(), weights).sqrt()


def log_mean_exp(log_p: Tensor, weights: Tensor | None = None) -> Tensor:
    """log Σₛ wₛ exp(log pₛ) / Σₛ wₛ."""
    if weights is None:
        return log_p.logsumexp(0) - math.log(len(log_p))
    shares = _shares(weights, log_p).log()
    return (log_p + shares.reshape(-1, *[1] * (log_p.dim() - 1))).logsumexp(0)


def quantile(values: Tensor, q: float, weights: Tensor | None = None) -> Tensor:
    """The q-quantile, interpolated between draws.

    Σₖ v₍ₖ₎ (F(c₍ₖ₎) − F(c₍ₖ₋₁₎)),  c₍ₖ₎ the weight up to v₍ₖ₎, F uniform on [h − 1, h] / n, h = q (n − 1) + 1

    with n = (Σ w)² / Σ w² draws that count: for equal weights the usual linear interpolation, and a draw without weight
    is no draw. Akinshin (2023), Weighted quantile estimators.
    """
    if weights is None:
        return values.quantile(q, dim=0)
    shares = _shares(weights, values)
    count = float(1 / shares.square().sum())
    ordered, order = values.sort(dim=0)
    cumulative = shares[order].cumsum(0)
    cumulative[-1] = 1  # to which rounding may not have come
    mass_below = (cumulative * count - q * (count - 1)).clamp(0, 1)
    return (ordered * mass_below.diff(dim=0, prepend=torch.zeros_like(mass_below[:1]))).sum(0)


def _shares(weights: Tensor, like: Tensor) -> Tensor:
    """Weights [S] that sum to one, as numbers of the kind they are multiplied with."""
    return (weights.double() / weights.double().sum()).to(like)
