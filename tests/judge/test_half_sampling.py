"""The Monte-Carlo error by half sampling, beside what repeated draws show."""

from __future__ import annotations

import math

import pytest
import torch

from doxa.judge.metrics.half_sampling import half_sampling_error


def estimated_and_true(statistic, make, times: int = 300) -> tuple[float, float]:
    """The root mean square of told errors, and the spread of the statistic over repeated sets of draws."""
    source = torch.Generator().manual_seed(0)
    sets = [make(source) for _ in range(times)]
    estimated = [half_sampling_error(lambda i, d=d: statistic(d[i])[None], len(d)) for d in sets[:100]]
    true_error = torch.stack([statistic(d) for d in sets]).std()
    return float(torch.stack(estimated).square().mean().sqrt()), float(true_error)


@pytest.mark.parametrize("draws", [20, 21])
def test_of_a_mean_is_its_standard_error(draws):
    estimated, true_error = estimated_and_true(lambda d: d.mean(), lambda g: torch.randn(draws, generator=g))
    assert estimated == pytest.approx(1 / math.sqrt(draws), rel=0.08)
    assert estimated == pytest.approx(true_error, rel=0.15)


@pytest.mark.parametrize(("shared", "per_row"), [(1.0, 0.3), (0.0, 1.0)])
def test_of_a_zero_one_error(shared, per_row):
    """Rows change class one by one (a sixth too low at most) or together."""
    margin = torch.linspace(-1, 1, 400)

    def draws(source: torch.Generator) -> torch.Tensor:
        return margin + shared * torch.randn(40, 1, generator=source) + per_row * torch.randn(40, 400, generator=source)

    estimated, true_error = estimated_and_true(lambda d: (d.mean(0) > 0).double().mean(), draws)
    assert 0.72 * true_error < estimated < 1.15 * true_error


def test_one_draw_cannot_tell():
    assert half_sampling_error(lambda i: torch.ones(2), 1).tolist() == [0, 0]


def test_repeats():
    values = torch.randn(30, generator=torch.Generator().manual_seed(1))
    first, second = (half_sampling_error(lambda i: values[i].mean()[None], 30) for _ in range(2))
    assert torch.equal(first, second)
