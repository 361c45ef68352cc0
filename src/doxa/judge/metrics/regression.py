"""Scores of real-valued predictions."""

from __future__ import annotations

from torch import Tensor

from doxa.errors import BadInput
from doxa.judge.metrics.checks import require_same_shape


def rmse(mean: Tensor, y: Tensor) -> Tensor:
    """The root of the mean squared error, over all rows and targets.

    rmse = √((1/BD) Σᵢ Σ_d (mean_id − y_id)²)

    mean and y of one shape [B, D] or [B].
    Gauss (1809), Theoria motus corporum coelestium.
    """
    require_same_shape(mean=mean, y=y)
    return (mean.double() - y.double()).square().mean().sqrt()


def coverage(y: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """The share of targets inside their intervals, ends included: it should be the level of the intervals.

    coverage = (1/BD) Σᵢ Σ_d [lower_id ≤ y_id ≤ upper_id]

    All of one shape [B, D] or [B].
    Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
    """
    _require_intervals(lower, upper)
    require_same_shape(lower=lower, y=y)
    return ((lower <= y) & (y <= upper)).double().mean()


def width(lower: Tensor, upper: Tensor) -> Tensor:
    """The mean width of the intervals: of two beliefs that cover equally well, the narrower knows more.

    width = (1/BD) Σᵢ Σ_d (upper_id − lower_id)

    Both of one shape [B, D] or [B].
    Gneiting, Balabdaoui & Raftery (2007), Probabilistic forecasts, calibration and sharpness.
    """
    _require_intervals(lower, upper)
    return (upper.double() - lower.double()).mean()


def _require_intervals(lower: Tensor, upper: Tensor) -> None:
    require_same_shape(lower=lower, upper=upper)
    if bool((lower > upper).any()):
        where = (lower > upper).nonzero()[0].tolist()
        raise BadInput(f"lower is above upper at {where}; give the lower ends of the intervals first")
