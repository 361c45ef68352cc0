"""Adaptation sampling: the rate of the scales grows while larger steps would have been better, and else goes back."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from doxa.search.distribution.gaussian import SearchDistribution

LARGER_STEP = 1.5  # what a larger step would have been
STEP = 0.1  # how fast the rate goes up, and back


def mann_whitney_z(values: Tensor, weights: Tensor) -> float:
    """By how many standard deviations points of given weights [N] have lower values than the same points unweighed.

    z = (U − m m′/2) / √(m m′ (m + m′ + 1)/12),  U = Σ_i w_i Σ_j [f_i < f_j] + ½[f_i = f_j],  m = N,  m′ = Σ w

    Mann & Whitney (1947), On a test of whether one of two random variables is stochastically larger than the other.
    """
    lower = (values[:, None] < values[None, :]).to(weights).sum(1)
    equal = (values[:, None] == values[None, :]).to(weights).sum(1)
    u = float((weights * (lower + equal / 2)).sum())
    count, total_weight = len(values), float(weights.sum())
    return (u - count * total_weight / 2) / max(
        math.sqrt(count * total_weight * (count + total_weight + 1) / 12), 1e-300
    )


def adapt_rate(
    rate: float,
    initial_rate: float,
    values: Tensor,
    points: Tensor,
    distribution: SearchDistribution,
    other: SearchDistribution,
) -> float:
    """The rate of the scales for the next step: higher where the larger step's points would have been better.

    η ← max(η, min(1.1 η, 1)) where the test of the same points, weighed by p_other/p, is passed by
    ρ = ½ − 1/(3(d + 1)); else η ← 0.9 η + 0.1 η_first

    The test takes all points as independent. Mirrored ones are not, so that its level is then a rough one.

    Schaul (2012), Natural evolution strategies converge on sphere functions; Wierstra et al. (2014).
    """
    finite = values.isfinite()
    weights = (other.log_prob(points[finite]) - distribution.log_prob(points[finite])).clamp_max(30).exp()
    level = 0.5 - 1 / (3 * (points.shape[1] + 1))
    threshold = float(torch.special.ndtri(torch.tensor(1 - level, dtype=torch.float64)))
    if mann_whitney_z(values[finite], weights) > threshold:
        return max(rate, min(1.0, (1 + STEP) * rate))
    return (1 - STEP) * rate + STEP * initial_rate
