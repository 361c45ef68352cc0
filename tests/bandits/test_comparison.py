"""Lines, pairs and thin curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch

from doxa.bandits import paired, slope, thinned
from doxa.bandits.comparison import student_quantile
from doxa.errors import BadInput


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 100])
@pytest.mark.parametrize("q", [0.025, 0.5, 0.9, 0.975, 0.995])
def test_quantiles_are_student_s(q: float, freedom: int) -> None:
    assert student_quantile(q, freedom) == pytest.approx(scipy.stats.t.ppf(q, freedom), rel=1e-5, abs=1e-8)


def test_pairs_have_student_s_interval() -> None:
    source = np.random.default_rng(0)
    a, b = source.normal(size=7), source.normal(size=7)
    difference = paired(a.tolist(), b.tolist())
    low, high = scipy.stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (difference.low, difference.high) == pytest.approx((low, high), rel=1e-5)
    assert difference.mean == pytest.approx((a - b).mean())
    assert difference.se == pytest.approx(scipy.stats.sem(a - b))
    assert difference.won == pytest.approx((a < b).mean())
    assert paired([1, 2, 3], [1, 3, 2]).won == 0.5
    with pytest.raises(BadInput, match="two seeds or more"):
        paired([1.0], [2.0])


def test_the_line_is_that_of_least_squares() -> None:
    y = torch.cat([torch.full((50,), 7.0), torch.arange(50) * 0.3 + torch.sin(torch.arange(50))])
    expected = scipy.stats.linregress(range(50), y[50:])
    fit = slope(y)
    assert fit.slope == pytest.approx(expected.slope, rel=1e-6)
    assert fit.r2 == pytest.approx(expected.rvalue**2, rel=1e-6)
    assert slope(torch.ones(10)).r2 == 1.0
    assert slope(torch.ones(10)).slope == 0.0
    with pytest.raises(BadInput, match="share"):
        slope(y, 0.0)
    with pytest.raises(BadInput, match="a step for each; got 3 and 2"):
        slope([1.0, 2.0, 3.0], steps=[1, 2])


def test_the_slope_of_a_thin_curve_is_that_of_the_curve() -> None:
    curve = [0.3 * t for t in range(10_000)]
    steps, values = thinned(curve, 100)
    assert slope(values, steps=steps).slope == pytest.approx(slope(curve).slope) == pytest.approx(0.3)
    far = [1e8 + 0.5 * t for t in range(100)]
    assert slope(far).slope == pytest.approx(0.5), "lists keep double precision"
    assert float(thinned([16777217.0])[1]) == 16777217.0
    with pytest.raises(BadInput, match="must rise"):
        slope([1.0, 2.0, 3.0], steps=[1, 1, 2])


@pytest.mark.parametrize("length", [1, 3, 250, 251, 50_000])
def test_a_thin_curve_ends_where_the_curve_does(length: int) -> None:
    steps, values = thinned(torch.arange(1, length + 1), 250)
    assert len(steps) == min(length, 250)
    assert torch.equal(steps, values), "values lie at their steps"
    assert int(steps[-1]) == length
    assert bool((steps.diff() > 0).all())
    gaps = steps.diff().double()
    assert len(gaps) == 0 or float(gaps.max() - gaps.min()) <= 1
    assert not math.isnan(float(values[-1]))
