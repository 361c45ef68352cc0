"""Intervals that hold what they promise: levels moved by what was seen on rows set aside."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.judge.metrics.checks import require_level
from doxa.likelihoods import over_draws
from doxa.predict.draws import Draws

KNOTS = 101  # at most; denser towards the ends, where a level matters most
EDGE = 1e-6  # as near to 0 and 1 as a float32 can ask


def calibration_levels(outputs: Tensor, noise: float, y: Tensor, weights: Tensor | None = None) -> Tensor:
    """Shares of rows and the levels they lie below, [2, K], 0 to 1: a straight line for a calibrated model.

    u = (1/S) Σₛ Φ((y − outputsₛ) / noise);  a share k / (n + 1) lies below u₍ₖ₎, the k-th smallest

    For a calibrated model E u₍ₖ₎ = k / (n + 1), so that on average nothing is moved, however few rows there are.
    Outside of the smallest and the largest the model's own tail is stretched to the share that is left.
    Outputs [S, B, ·], targets of as many numbers; weights [S] in place of 1/S.
    Dawid (1984), Statistical theory: the prequential approach; Weibull (1939), A statistical theory of the strength of
    materials.
    """
    below = torch.special.ndtr((y.reshape(outputs.shape[1:]) - outputs).double() / noise)
    u = over_draws.mean(below, weights).flatten().sort().values
    edge = math.log(len(u))  # the logit of n / (n + 1)
    even_shares = torch.linspace(-edge, edge, KNOTS, dtype=torch.float64).sigmoid()
    rank = ((len(u) + 1) * even_shares).round().long().clamp(1, len(u)).unique()
    start, end = u.new_zeros(1), u.new_ones(1)
    return torch.stack([torch.cat([start, rank / (len(u) + 1), end]), torch.cat([start, u[rank - 1], end])])


def recalibrate_level(q: float, levels: Tensor) -> float:
    """The level to ask for so that a share q of new rows lies below.

    Kuleshov, Fenner & Ermon (2018), Accurate uncertainties for deep learning using calibrated regression.
    """
    if levels.dim() == 1:  # as early runs have them, at even shares
        levels = torch.stack([torch.linspace(0, 1, len(levels), dtype=levels.dtype), levels])
    if levels.dim() != 2 or len(levels) != 2:
        raise BadInput(f"levels must be shares and levels, [2, K]; got shape {tuple(levels.shape)}: learn the run anew")
    level = float(np.interp(q, *levels.cpu().numpy()))
    return min(max(level, EDGE), 1 - EDGE)


def interval_levels(level: float, levels: Tensor | None = None) -> tuple[float, float]:
    """The two levels to ask for a central interval, moved where `levels` say so."""
    require_level(level)
    lower, upper = (1 - level) / 2, (1 + level) / 2
    return (lower, upper) if levels is None else (recalibrate_level(lower, levels), recalibrate_level(upper, levels))


def interval(draws: Draws, level: float, levels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The central interval, two ends [B, ·], that holds y with probability `level`: as it is judged and delivered."""
    lower, upper = interval_levels(level, levels)
    return draws.quantile(lower), draws.quantile(upper)
