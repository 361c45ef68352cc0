"""The closed-form CRPS of a Gaussian mixture, beside numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from doxa.errors import BadInput
from doxa.judge import crps_gaussian_mixture
from doxa.judge.metrics import crps as module


def integrated(location, scale, y: float) -> float:
    """∫ (F(z) − [z ≥ y])² dz."""

    def distribution(z: float) -> float:
        return float(norm.cdf(z, location, scale).mean())

    below = quad(lambda z: distribution(z) ** 2, -40, y, limit=200, points=[-5, 0])[0]
    return below + quad(lambda z: (1 - distribution(z)) ** 2, y, 40, limit=200, points=[5, 10])[0]


def mixtures(seed: int, draws: int = 4, rows: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    location = torch.randn(draws, rows, 1, generator=source, dtype=torch.float64) * 2
    scale = 0.2 + torch.rand(draws, rows, 1, generator=source, dtype=torch.float64)
    return location, scale, torch.randn(rows, 1, generator=source, dtype=torch.float64) * 2


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_numerical_integration(seed):
    location, scale, y = mixtures(seed)
    by_rows = [integrated(location[:, i, 0].numpy(), scale[:, i, 0].numpy(), float(y[i])) for i in range(3)]
    assert crps_gaussian_mixture(location, scale, y).value == pytest.approx(np.mean(by_rows), rel=1e-6)


def test_one_gaussian_has_the_known_form():
    location, scale, y = torch.tensor([[1.0]]), torch.tensor(2.0), torch.tensor([2.5])
    z = 0.75
    closed_form = 2 * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    assert crps_gaussian_mixture(location, scale, y).value == pytest.approx(closed_form)
    assert crps_gaussian_mixture(location, scale, y).error == 0


def test_points_without_scale_have_the_sample_form():
    location, y = torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([2.0])
    by_hand = (2 + 1 + 2) / 3 - (2 * (1 + 4 + 3)) / (2 * 9)
    assert crps_gaussian_mixture(location, torch.tensor(0.0), y).value == pytest.approx(by_hand)


def test_chunks_change_nothing(monkeypatch):
    location, scale, y = mixtures(0, rows=50)
    unchunked = crps_gaussian_mixture(location, scale, y)
    for pairs in (7 * 16, 12):  # seven rows at a time; three draws of one row
        monkeypatch.setattr(module, "PAIRS", pairs)
        chunked = crps_gaussian_mixture(location, scale, y)
        assert chunked.value == pytest.approx(unchunked.value, rel=1e-12)
        assert chunked.error == pytest.approx(unchunked.error, rel=1e-9)


def test_error_is_the_spread_over_repeated_draws():
    source = torch.Generator().manual_seed(0)
    y, scale = 0.3 * torch.randn(15, generator=source), torch.tensor(0.2)
    slope = torch.linspace(1, 3, 15)
    # Draws shared by all rows, and as far from each other as from y, so that both terms of the score count.
    sets = [slope * torch.randn(30, 1, generator=source) for _ in range(400)]
    estimates = [crps_gaussian_mixture(s, scale, y) for s in sets]
    true_error, estimated_error = (
        np.std([e.value for e in estimates]),
        math.sqrt(np.mean([e.error**2 for e in estimates])),
    )
    assert estimated_error == pytest.approx(true_error, rel=0.15)


def test_refuses_scales_that_do_not_fit():
    with pytest.raises(BadInput, match="broadcast"):
        crps_gaussian_mixture(torch.zeros(3, 4), torch.ones(5), torch.zeros(4))
    with pytest.raises(BadInput, match="negative"):
        crps_gaussian_mixture(torch.zeros(3, 4), -torch.ones(4), torch.zeros(4))
    with pytest.raises(BadInput, match="draws"):
        crps_gaussian_mixture(torch.zeros(3, 4, 1), torch.ones(()), torch.zeros(4))
