"""Curves and agents beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.errors import BadInput, require_whole

Values = Tensor | Sequence[float]


@dataclass(frozen=True)
class LinearFit:
    """A straight line through the end of a curve: its slope a step, and the share of variance that it explains."""

    slope: float
    r2: float


def slope(curve: Values, share: float = 0.5, steps: Values | None = None) -> LinearFit:
    """The line of least squares through the last `share` of a curve [T].

    slope = Cov(t, y) / Var(t),  R² = Cov(t, y)² / (Var(t) Var(y))

    A curve that does not move at all is its own line, with R² = 1. `steps` are those of a curve that was thinned; else
    there is a point for each.
    """
    if not 0 < share <= 1:
        raise BadInput(f"share must be above 0 and at most 1, got {share}")
    y = _as_tensor(curve).double().cpu()
    t = torch.arange(len(y), dtype=torch.float64) if steps is None else _as_tensor(steps).double().cpu()
    if len(y) < 2 or t.shape != y.shape:
        raise BadInput(f"a line needs a curve of two points or more, and a step for each; got {len(y)} and {len(t)}")
    if not bool((t.diff() > 0).all()):
        raise BadInput("steps must rise from each to the next")
    tail = slice(len(y) - max(2, round(share * len(y))), None)
    t, y = t[tail] - t[tail].mean(), y[tail] - y[tail].mean()
    covariance = float(t @ y)
    variance_product = float(t @ t) * float(y @ y)
    return LinearFit(covariance / float(t @ t), covariance**2 / variance_product if variance_product > 0 else 1.0)


def _as_tensor(curve: Values) -> Tensor:
    """A list in double precision, a tensor as it is."""
    return curve if isinstance(curve, Tensor) else torch.tensor(curve, dtype=torch.float64)


@dataclass(frozen=True)
class PairedDifference:
    """A mean of differences by seed, with its standard error, its interval, and the share of seeds in which a < b."""

    mean: float
    se: float
    low: float
    high: float
    won: float


def paired(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> PairedDifference:
    """a − b by seed, of two agents that met the same: mean, and Student's interval of it.

    mean ± t_{n−1} · s/√n,  s² the variance of the n differences

    A draw counts as half won. Student (1908), The probable error of a mean.
    """
    if len(a) != len(b) or len(a) < 2:
        raise BadInput(f"pairs need two lists of one length, with two seeds or more; got {len(a)} and {len(b)}")
    differences = torch.tensor(a, dtype=torch.float64) - torch.tensor(b, dtype=torch.float64)
    mean, se = float(differences.mean()), float(differences.std()) / math.sqrt(len(differences))
    half_width = student_quantile((1 + level) / 2, len(differences) - 1) * se
    won = (differences < 0).double() + 0.5 * (differences == 0).double()
    return PairedDifference(mean, se, mean - half_width, mean + half_width, float(won.mean()))


def student_quantile(q: float, freedom: int) -> float:
    """The q-quantile of Student's t.

    t = √ν tan θ,  P(|T| < t) = sin θ · Σ_k aₖ cos^k θ for even ν,  2/π (θ + sin θ · Σ_k aₖ cos^k θ) for odd ν

    The angle is found by halving. Abramowitz & Stegun (1964), Handbook of mathematical functions, 26.7.3 and 26.7.4.
    """
    if not 0 < q < 1:
        raise BadInput(f"q must lie between 0 and 1, got {q}")
    freedom, low, high = require_whole("freedom", freedom), -math.pi / 2, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        below = 0.5 + 0.5 * _central_probability(middle, freedom)
        low, high = (middle, high) if below < q else (low, middle)
    return math.sqrt(freedom) * math.tan(high)


def _central_probability(theta: float, freedom: int) -> float:
    """P(|T| < √ν tan θ), below zero for angles below zero; the sum ends at cos^{ν−2} θ."""
    is_odd, cosine = freedom % 2, math.cos(theta)
    total, term = 0.0, cosine if is_odd else 1.0
    for power in range(is_odd, freedom - 1, 2):
        total, term = total + term, term * cosine**2 * (power + 1) / (power + 2)
    total *= math.sin(theta)
    return 2 / math.pi * (theta + total) if is_odd else total


def thinned(curve: Values, points: int = 250) -> tuple[Tensor, Tensor]:
    """At most so many points of a curve [T], evenly spaced, the last among them: steps counted from 1, and values."""
    curve = _as_tensor(curve)
    points = min(require_whole("points", points), len(curve))
    steps = (torch.arange(1, points + 1, dtype=torch.float64) * len(curve) / points).round().long()
    return steps, curve[steps - 1]
