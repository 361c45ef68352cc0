"""The continuous ranked probability score."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from doxa.contracts import Estimate
from doxa.errors import BadInput
from doxa.judge.metrics.checks import require_no_nan, require_not_empty
from doxa.judge.metrics.predictive_density import standard_error
from doxa.likelihoods import over_draws

PAIRS = 1 << 22  # pairs of draws worked on at a time: 32 MB a tensor in float64


def crps_gaussian_mixture(
    location: Tensor, scale: Tensor, y: Tensor, weights: Tensor | None = None, strata: Tensor | None = None
) -> Estimate:
    """The distance between a predicted distribution and what came: a mean absolute error that knows of spread.

    crps = (1/S) Σₛ A(y − μₛ, σₛ²) − (1/2S²) Σₛ Σₜ A(μₛ − μₜ, σₛ² + σₜ²)
    A(m, v) = 2 √v φ(m/√v) + m (2Φ(m/√v) − 1)

    for the equal mixture of N(μₛ, σₛ²), averaged over rows and targets; exact, in S² steps. Its Monte-Carlo
    error is sdₛ(aₛ) / √S of the linearised score aₛ = A(y − μₛ, σₛ²) − (1/S) Σₜ A(μₛ − μₜ, σₛ² + σₜ²).
    location [S, B, D] or [S, B]; scale broadcastable to it; y [B, D] or [B]; weights [S] in place of 1/S; strata
    [S] as `standard_error` has them.
    Grimit et al. (2006), The continuous ranked probability score for circular variables, equation 5.
    """
    mu, sigma, target = _flatten_columns(location, scale, y)
    draws, columns = mu.shape
    to_target, pair_distance = mu.new_zeros(draws), mu.new_zeros(draws, draws)
    step, block = max(1, PAIRS // draws**2), max(1, PAIRS // draws)
    for start in range(0, columns, step):
        m, v = mu[:, start : start + step], sigma[:, start : start + step].square()
        to_target += _mean_absolute(target[start : start + step] - m, v).sum(1) / columns
        for first in range(0, draws, block):
            draw_block = slice(first, first + block)
            pair_distance[draw_block] += (
                _mean_absolute(m[draw_block, None] - m, v[draw_block, None] + v).sum(2) / columns
            )
    mean_distance = pair_distance.mean(1) if weights is None else over_draws.mean(pair_distance, weights)
    mean_pair_distance = pair_distance.mean() if weights is None else over_draws.mean(mean_distance, weights)
    value = over_draws.mean(to_target, weights) - mean_pair_distance / 2
    if draws == 1:
        return Estimate(float(value))
    return Estimate(float(value), float(standard_error(to_target - mean_distance, weights, strata)))


def _mean_absolute(m: Tensor, v: Tensor) -> Tensor:
    """A(m, v) = E|x|, x ~ N(m, v); |m| where v is 0."""
    sd = v.sqrt()
    z = m / sd.clamp_min(torch.finfo(sd.dtype).tiny)
    density = (-0.5 * z.square()).exp() / math.sqrt(2 * math.pi)
    return 2 * sd * density + m * torch.erf(z / math.sqrt(2))


def _flatten_columns(location: Tensor, scale: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Locations and scales [S, B·D] and targets [B·D], checked, in float64."""
    if location.dim() < 2 or location.shape[1:] != y.shape:
        raise BadInput(
            f"location has shape {tuple(location.shape)} and y {tuple(y.shape)}; location must be [draws, *y.shape]"
        )
    for name, values in (("location", location), ("scale", scale), ("y", y)):
        require_not_empty(name, values)
        require_no_nan(name, values)
    if bool((scale < 0).any()):
        raise BadInput(f"scale must not be negative; its smallest entry is {float(scale.min()):g}")
    try:
        spread = scale.broadcast_to(location.shape)
    except RuntimeError:
        raise BadInput(
            f"scale has shape {tuple(scale.shape)}, which does not broadcast to location's {tuple(location.shape)}"
        ) from None
    return location.double().flatten(1), spread.double().flatten(1), y.double().flatten()
