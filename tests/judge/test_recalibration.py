"""Intervals hold what they promise, on rows that nobody has seen, however few there were to calibrate on."""

from __future__ import annotations

import pytest
import torch

from doxa.errors import BadInput
from doxa.judge.recalibration import EDGE, calibration_levels, interval, interval_levels, recalibrate_level
from doxa.likelihoods import gaussian
from doxa.predict.draws import Draws
from doxa.random.keys import normal

LIKE = torch.zeros(1)
TIMES = 300  # calibrations, each on rows of its own


def learned(rows: int, deviation: float, key: int) -> torch.Tensor:
    """Levels from rows whose deviation is not the 1 that the model believes in."""
    y = deviation * normal(rows, (key, rows), LIKE)[:, None]
    return calibration_levels(torch.zeros(1, rows, 1), 1.0, y)


def covered(rows: int, level: float, deviation: float) -> float:
    """The mean share of fresh rows inside the intervals of a model that says N(0, 1)."""
    fresh = deviation * normal(4000, (9,), LIKE)[:, None]
    draws = Draws(torch.zeros(1, 1, 1), gaussian(1.0), {})
    shares = []
    for key in range(TIMES):
        lower, upper = interval(draws, level, learned(rows, deviation, key))
        shares.append(((lower <= fresh) & (fresh <= upper)).double().mean())
    return float(torch.stack(shares).mean())


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("rows", [10, 20, 50, 200, 2000])
def test_a_calibrated_model_is_left_calibrated(rows: int, level: float) -> None:
    assert covered(rows, level, 1.0) == pytest.approx(level, abs=0.02)


@pytest.mark.parametrize("deviation", [1.5, 1 / 1.5])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("rows", [200, 2000])
def test_a_model_that_is_too_sure_or_not_sure_enough_is_mended(rows: int, level: float, deviation: float) -> None:
    assert covered(rows, level, deviation) == pytest.approx(level, abs=0.03)


@pytest.mark.parametrize("rows", [1, 2, 7, 5000])
def test_levels_rise_from_0_to_1_and_are_few(rows: int) -> None:
    levels = learned(rows, 2.0, key=1)
    assert levels[:, 0].tolist() == [0, 0]
    assert levels[:, -1].tolist() == [1, 1]
    assert bool((levels.diff() >= 0).all())
    assert levels.shape[1] <= 103
    moved_levels = [recalibrate_level(q, levels) for q in (1e-9, 0.01, 0.5, 0.99, 1 - 1e-9)]
    assert moved_levels == sorted(moved_levels)
    assert moved_levels[0] >= EDGE
    assert moved_levels[-1] <= 1 - EDGE


def test_a_share_lies_below_the_row_of_its_rank() -> None:
    """Nine rows: the k-th smallest is where a tenth times k lies below, and half a tenth is half of the first one's."""
    levels = learned(9, 1.0, key=3)
    u = torch.special.ndtr(normal(9, (3, 9), LIKE).double()).sort().values
    assert [recalibrate_level(k / 10, levels) for k in range(1, 10)] == pytest.approx(u.tolist())
    assert recalibrate_level(0.25, levels) == pytest.approx(float(u[1] + u[2]) / 2)
    assert recalibrate_level(0.05, levels) == pytest.approx(float(u[0]) / 2)


def test_levels_of_early_runs_are_read_as_they_were() -> None:
    early = torch.linspace(0, 1, 101, dtype=torch.float64).square()
    assert recalibrate_level(0.5, early) == pytest.approx(0.25)
    assert recalibrate_level(0.125, early) == pytest.approx((0.12**2 + 0.13**2) / 2)
    with pytest.raises(BadInput, match=r"levels must be shares and levels, \[2, K\]; got shape \(3, 4\)"):
        recalibrate_level(0.5, torch.zeros(3, 4))


def test_without_levels_the_ends_are_those_asked_for() -> None:
    assert interval_levels(0.9) == pytest.approx((0.05, 0.95))
    with pytest.raises(BadInput, match="level must lie"):
        interval_levels(1.0)
