"""Adaptation sampling: the test is Mann and Whitney's, and the rate of the scales follows what is needed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import mannwhitneyu

import doxa
from doxa.search import Search, Settings, functions, minimise
from doxa.search.distribution.adaptation_sampling import adapt_rate, mann_whitney_z
from doxa.search.distribution.gaussian import SearchDistribution


def test_points_that_count_whole_or_not_at_all_are_a_plain_rank_test() -> None:
    values = torch.randn(40, generator=torch.Generator().manual_seed(0)).double()
    weights = (torch.arange(40) % 3 == 0).double()
    # U counts each weighed point once against itself, as a tie.
    u = mannwhitneyu(-values[weights > 0], -values).statistic
    total_weight = float(weights.sum())
    expected = (u - 40 * total_weight / 2) / math.sqrt(40 * total_weight * (40 + total_weight + 1) / 12)
    assert math.isclose(mann_whitney_z(values, weights), expected, rel_tol=1e-9)


def test_the_rate_goes_up_where_larger_steps_are_better_and_back_where_not() -> None:
    distribution = SearchDistribution(torch.zeros(2).double(), torch.ones(2).double())
    wide, narrow = (SearchDistribution(distribution.mean, torch.full((2,), s).double()) for s in (1.3, 0.7))
    points = torch.randn(200, 2, generator=torch.Generator().manual_seed(1)).double()
    far_is_good = -points.norm(dim=1)
    assert math.isclose(adapt_rate(0.2, 0.1, far_is_good, points, distribution, wide), 0.22)
    assert math.isclose(adapt_rate(0.2, 0.1, far_is_good, points, distribution, narrow), 0.19)
    assert adapt_rate(0.95, 0.1, far_is_good, points, distribution, wide) == 1.0
    assert adapt_rate(1.5, 1.5, far_is_good, points, distribution, wide) == 1.5


def test_where_scales_are_far_too_wide_the_rate_rises_and_they_fall_sooner() -> None:
    def run_search(adapts: bool) -> tuple[Search, list[float]]:
        search, rates = Search([0.3, 0.3], Settings(adapts=adapts, scale=100.0, scale_lr=0.2)), []
        for _ in range(60):
            search.tell(functions.sphere(search.ask()))
            rates.append(search.current_scale_lr)
        return search, rates

    (plain, fixed), (adaptive, rates) = run_search(False), run_search(True)
    assert len(set(fixed)) == 1
    assert max(rates) > 1.5 * rates[0]
    assert float(adaptive.distribution.scale.max()) < 0.1 * float(plain.distribution.scale.min())


def test_it_solves_what_is_solved_without_and_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    assert minimise(functions.himmelblau, [0.0, 0.0], adapts=True).value < 1e-8
    options: dict[str, Any] = {"adapts": True, "scale": 0.1}
    uninterrupted = minimise(functions.sphere, [10.0, 20.0], generations=20, **options)
    minimise(functions.sphere, [10.0, 20.0], generations=9, checkpoint=tmp_path, **options)
    resumed = minimise(functions.sphere, [10.0, 20.0], generations=20, checkpoint=tmp_path, resume=True, **options)
    assert torch.equal(uninterrupted.path, resumed.path)


def test_bad_input_is_named() -> None:
    with pytest.raises(doxa.BadInput, match="leave optimiser out"):
        Settings(adapts=True, optimiser=torch.optim.Adam)
