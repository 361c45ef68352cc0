"""How well draws foretell targets, in the targets' own units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from doxa.likelihoods import over_draws
from doxa.predict.draws import Draws

GRID_STD = 1 / math.sqrt(12)  # the standard deviation of what is lost by rounding to a grid, in steps of it


def log_density(draws: Draws, y: Tensor, unit: float, widenings: Sequence[float], least_noise: float) -> Tensor:
    """log p(y) of each row in the targets' own units, for noise that is widened by each factor [W, B].

    log p(y) = log (1/S) Σₛ N(y'; locationₛ, max(widening · scaleₛ, least_noise)²) − log unit,  y' = (y − mean) / unit

    `y` [B] are y', of the split's unit; `least_noise` is in that unit too.
    """
    location, scale = (t.double().squeeze(-1) for t in draws.likelihood.split(draws.outputs, draws.parameters))  # type: ignore[attr-defined]
    target = y.to(location)
    log_densities = []
    for widening in widenings:
        noise = (widening * scale).clamp_min(least_noise)
        log_p = -0.5 * ((target - location) / noise).square() - noise.log() - 0.5 * math.log(2 * math.pi)
        log_densities.append(over_draws.log_mean_exp(log_p, draws.weights) - math.log(unit))
    return torch.stack(log_densities)


def grid_noise(y: Tensor) -> float:
    """The least noise of targets on a grid, such as marks from 3 to 8: step/√12, the spread of a rounding error.

    A finer density would be a bet on the grid, not on the quantity. The step is the smallest distance of two targets.
    """
    gaps = y.double().unique().diff()
    return float(gaps.min()) * GRID_STD if len(gaps) else 0.0


def squared_error(draws: Draws, y: Tensor) -> Tensor:
    """(E[y'] − y')² of each row [B]."""
    mean = draws.mean.double().squeeze(-1)
    return (mean - y.to(mean)).square()
