"""The laws of the Wasserstein distance between draws."""

from __future__ import annotations

import math
from importlib import import_module

import pytest
import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.judge import TABLE

wasserstein_2 = TABLE["distance"]["wasserstein_2"]


def quantiles(mean: float, std: float, count: int = 20001) -> Tensor:
    """A normal distribution as equally likely points, without any chance."""
    u = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    return mean + std * torch.special.ndtri(u)


def draws(count: int, seed: int = 0, points: int = 5) -> Tensor:
    return torch.randn(count, points, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (2.0, 1.0), (0.0, 0.3), (-1.0, 4.0)])
def test_between_gaussians_it_is_closed(mean: float, std: float) -> None:
    expected = math.hypot(mean, std - 1)
    assert float(wasserstein_2(quantiles(mean, std), quantiles(0.0, 1.0))) == pytest.approx(expected, abs=2e-3)


def test_of_points_it_is_what_pairing_in_order_costs() -> None:
    a, b = draws(50), draws(50, 1) * 2 + 1
    expected = (a.sort(0).values - b.sort(0).values).square().mean(0).sqrt()
    torch.testing.assert_close(wasserstein_2(a, b), expected)


def test_different_numbers_of_draws_share_their_mass() -> None:
    """Two points against three: the middle one is torn apart."""
    a, b = torch.tensor([0.0, 1.0]), torch.tensor([0.0, 5.0, 1.0])
    expected = (0 + (1 / 6) * 1 + (1 / 6) * 0 + (1 / 3) * 16) ** 0.5
    assert float(wasserstein_2(a, b)) == pytest.approx(expected)


def test_it_is_a_distance() -> None:
    a, b, c = draws(40), 3 * draws(60, 1), draws(25, 2) - 2
    ab, bc, ac = wasserstein_2(a, b), wasserstein_2(b, c), wasserstein_2(a, c)
    torch.testing.assert_close(ab, wasserstein_2(b, a))
    assert bool((ac <= ab + bc + 1e-12).all())
    assert float(wasserstein_2(a, a[torch.randperm(40)]).max()) == pytest.approx(0, abs=1e-12)
    torch.testing.assert_close(wasserstein_2(a + 3, a), torch.full((5,), 3.0, dtype=torch.float64))
    torch.testing.assert_close(wasserstein_2(7 * a, 7 * b), 7 * ab)


def test_a_draw_of_weight_three_is_three_draws() -> None:
    a, b = draws(4), draws(6, 1)
    repeated = torch.cat([a, a[1:2], a[1:2]])
    weighted = wasserstein_2(a, b, weights=torch.tensor([1.0, 3.0, 1.0, 1.0]))
    torch.testing.assert_close(weighted, wasserstein_2(repeated, b), rtol=0, atol=1e-6)
    gone = wasserstein_2(b, a, other_weights=torch.tensor([1.0, 1.0, 0.0, 1.0]))
    torch.testing.assert_close(gone, wasserstein_2(b, a[[0, 1, 3]]), rtol=0, atol=1e-6)


def test_points_are_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = draws(30).unflatten(1, (5, 1)), draws(20, 1).unflatten(1, (5, 1))
    whole = wasserstein_2(a, b)
    assert whole.shape == (5, 1)
    monkeypatch.setattr(import_module("doxa.judge.metrics.wasserstein"), "NUMBERS_AT_ONCE", 1)
    torch.testing.assert_close(wasserstein_2(a, b), whole)


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (torch.zeros(3, 2), torch.zeros(3, 4), "the same points"),
        (torch.zeros(0, 2), torch.zeros(3, 2), "empty|nothing"),
        (torch.tensor([math.nan]), torch.zeros(1), "NaN"),
    ],
)
def test_what_has_no_distance_is_refused(a: Tensor, b: Tensor, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        wasserstein_2(a, b)
