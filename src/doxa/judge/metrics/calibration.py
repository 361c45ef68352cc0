"""Calibration: of all the times the belief says 80 %, is it right 80 % of the time?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.judge.metrics.checks import require_bins, require_probabilities

BINS = 15  # Guo et al. (2017) and most since


@dataclass(frozen=True)
class Reliability:
    """Predictions sorted into K bins by their score: a reliability diagram as a table.

    `edges` [K+1] (a bin is open below and closed above); `count`, mean `confidence` and `accuracy` [K], the last
    two NaN where a bin is empty.
    """

    edges: Tensor
    count: Tensor
    confidence: Tensor
    accuracy: Tensor

    @property
    def ece(self) -> Tensor:
        """Σ_k (count_k / N) |accuracy_k − confidence_k|."""
        gap = (self.accuracy - self.confidence).abs().nan_to_num(0)
        return (self.count * gap).sum() / self.count.sum()


def reliability(p: Tensor, y: Tensor, bins: int = BINS) -> Reliability:
    """How often the likeliest class is right, by how likely it was said to be.

    p [B, C], y [B]; bins of equal width on (0, 1].
    DeGroot & Fienberg (1983), The comparison and evaluation of forecasters; Guo et al. (2017).
    """
    confidence, correct = _top_confidence(p, y)
    return _reliability_table(confidence, correct, _equal_width_edges(bins, confidence))


def reliability_all_classes(p: Tensor, y: Tensor, bins: int = BINS) -> Reliability:
    """How often a class is the label, by how likely it was said to be: every class score is a prediction.

    p [B, C], y [B]; B·C predictions, bins of equal width on (0, 1].
    Murphy & Winkler (1977), Reliability of subjective probability forecasts of precipitation and temperature.
    """
    y = require_probabilities(p, y)
    is_label = F.one_hot(y, p.shape[1]).double()
    return _reliability_table(p.double().flatten(), is_label.flatten(), _equal_width_edges(bins, p.double()))


def ece(p: Tensor, y: Tensor, bins: int = BINS) -> Tensor:
    """Expected calibration error of the likeliest class, bins of equal width.

    ece = Σ_k (n_k / B) |accuracy_k − confidence_k|

    p [B, C], y [B].
    Naeini et al. (2015), Obtaining well calibrated probabilities using Bayesian binning; Guo et al. (2017).
    """
    return reliability(p, y, bins).ece


def ece_adaptive(p: Tensor, y: Tensor, bins: int = BINS) -> Tensor:
    """Expected calibration error of the likeliest class, bins that hold equally many rows.

    ece_adaptive = Σ_k (n_k / B) |accuracy_k − confidence_k|,  n_k ≈ B / K

    Rows of equal confidence share a bin, so the order of rows is nothing. p [B, C], y [B].
    Nguyen & O'Connor (2015), Posterior calibration and exploratory analysis; Nixon et al. (2019).
    """
    confidence, correct = _top_confidence(p, y)
    return _reliability_table(confidence, correct, _equal_mass_edges(bins, confidence)).ece


def ece_classwise(p: Tensor, y: Tensor, bins: int = BINS) -> Tensor:
    """Expected calibration error of every class score, class by class, then averaged over the C classes.

    ece_classwise = (1/C) Σ_c Σ_k (n_kc / B) |share_kc(y = c) − mean_kc(p_c)|

    Called static calibration error by Nixon et al. p [B, C], y [B]; bins of equal width.
    Kull et al. (2019), Beyond temperature scaling; Nixon et al. (2019), Measuring calibration in deep learning.
    """
    y = require_probabilities(p, y)
    p = p.double()
    rows, classes = p.shape
    edges = _equal_width_edges(bins, p)
    bin_index = torch.bucketize(p, edges[1:-1]) + bins * torch.arange(classes, device=p.device)
    gap = p.new_zeros(classes * bins).index_add_(0, bin_index.flatten(), (F.one_hot(y, classes) - p).flatten())
    return gap.abs().sum() / (classes * rows)


def _top_confidence(p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The probability of the likeliest class [B], and whether it is the label [B]."""
    y = require_probabilities(p, y)
    confidence, label = p.double().max(1)
    return confidence, (label == y).double()


def _equal_width_edges(bins: int, like: Tensor) -> Tensor:
    require_bins(bins)
    return torch.linspace(0, 1, bins + 1, dtype=like.dtype, device=like.device)


def _equal_mass_edges(bins: int, score: Tensor) -> Tensor:
    """Edges [K+1] at every ⌈kB/K⌉-th smallest score."""
    require_bins(bins)
    last = [-(-k * len(score) // bins) - 1 for k in range(1, bins)]
    inner = score.sort().values[torch.tensor(last, dtype=torch.long, device=score.device).clamp_min(0)]
    return torch.cat([score.new_zeros(1), inner, score.new_ones(1)])


def _reliability_table(score: Tensor, correct: Tensor, edges: Tensor) -> Reliability:
    bin_index = torch.bucketize(score, edges[1:-1])

    def total(values: Tensor) -> Tensor:
        return score.new_zeros(len(edges) - 1).index_add_(0, bin_index, values)

    count = total(torch.ones_like(score))
    return Reliability(edges, count.long(), total(score) / count, total(correct) / count)
