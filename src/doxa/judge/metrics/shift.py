"""Telling what the belief has never seen from what it has, by a score that should be higher for the unseen."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.judge.metrics.checks import require_no_nan, require_not_empty


def auroc(inside: Tensor, outside: Tensor) -> Tensor:
    """The chance that an unseen input scores above a familiar one; 1 is perfect, ½ is blind.

    auroc = P(outside > inside) + ½ P(outside = inside)

    Scores of familiar inputs [B] and of unseen ones [B'].
    Mann & Whitney (1947); Hanley & McNeil (1982), The meaning and use of the area under a ROC curve.
    """
    _require_scores(inside, outside)
    ranked = inside.sort().values
    below = torch.searchsorted(ranked, outside.contiguous())
    not_above = torch.searchsorted(ranked, outside.contiguous(), right=True)
    return (below + not_above).double().mean() / (2 * len(inside))


def fpr95(inside: Tensor, outside: Tensor) -> Tensor:
    """The share of familiar inputs called unseen by the threshold that catches 95 % of the unseen; 0 is perfect.

    fpr95 = P(inside ≥ t),  t = the largest threshold with P(outside ≥ t) ≥ 0.95

    Scores of familiar inputs [B] and of unseen ones [B'].
    Hendrycks, Mazeika & Dietterich (2019), Deep anomaly detection with outlier exposure.
    """
    _require_scores(inside, outside)
    caught_count = -(-95 * len(outside) // 100)
    threshold = outside.sort(descending=True).values[caught_count - 1]
    return (inside >= threshold).double().mean()


def _require_scores(inside: Tensor, outside: Tensor) -> None:
    for name, scores in (("inside", inside), ("outside", outside)):
        if scores.dim() != 1:
            raise BadInput(f"{name} has shape {tuple(scores.shape)}; it must be one score an input, [rows]")
        require_not_empty(name, scores)
        require_no_nan(name, scores)
    if inside.dtype != outside.dtype:
        raise BadInput(f"inside is {inside.dtype} and outside {outside.dtype}; bring them to one dtype")
