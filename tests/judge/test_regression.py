"""Scores of real-valued predictions, by hand and beside scikit-learn."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import root_mean_squared_error

from doxa.errors import BadInput
from doxa.judge import coverage, rmse, width


def test_by_hand():
    y = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    lower, upper = y - torch.tensor([[1.0], [0.0], [-0.5], [2.0]]), y + torch.tensor([[1.0], [0.0], [1.0], [-1.0]])
    assert float(coverage(y, lower, upper)) == 0.5  # the ends belong to the interval
    assert float(width(lower, upper)) == pytest.approx((2 + 0 + 0.5 + 1) / 4)
    assert float(rmse(y + torch.tensor([[1.0], [-1.0], [2.0], [0.0]]), y)) == pytest.approx((6 / 4) ** 0.5)


def test_rmse_agrees_with_scikit_learn():
    source = torch.Generator().manual_seed(0)
    mean, y = (torch.randn(50, 1, generator=source, dtype=torch.float64) for _ in range(2))
    assert float(rmse(mean, y)) == pytest.approx(root_mean_squared_error(y, mean))


def test_gaussian_intervals_cover_at_their_level():
    y = torch.randn(40_000, generator=torch.Generator().manual_seed(0))
    assert float(coverage(y, torch.full_like(y, -1.2816), torch.full_like(y, 1.2816))) == pytest.approx(0.8, abs=0.01)


def test_refuse_what_broadcasts_by_accident():
    with pytest.raises(BadInput, match="alike"):
        rmse(torch.zeros(5, 1), torch.zeros(5))
    with pytest.raises(BadInput, match="above upper"):
        width(torch.ones(3), torch.zeros(3))
