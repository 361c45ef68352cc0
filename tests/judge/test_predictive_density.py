"""The lppd and its Monte-Carlo error, which must hold for draws that all rows share."""

from __future__ import annotations

import math

import pytest
import torch

from doxa.judge import gibbs_nll, lppd, lppd_bias, lppd_error

LOG_P = torch.tensor([[0.2, 0.5], [0.4, 0.1]]).log()


def repeated(shared: float, per_row: float, draws: int, rows: int = 25, times: int = 1500) -> torch.Tensor:
    """Log-densities [times, S, B] with a part that all rows share and one of their own."""
    source = torch.Generator().manual_seed(0)
    base = -torch.rand(rows, generator=source, dtype=torch.float64) * 3
    common = torch.randn(times, draws, 1, generator=source, dtype=torch.float64)
    alone = torch.randn(times, draws, rows, generator=source, dtype=torch.float64)
    return base + shared * common + per_row * alone


def test_by_hand():
    assert float(lppd(LOG_P)) == pytest.approx((math.log(0.3) + math.log(0.3)) / 2)
    assert float(gibbs_nll(LOG_P)) == pytest.approx(-math.log(0.2 * 0.5 * 0.4 * 0.1) / 4)
    # c = ½(⅔ + 5/3), ½(4/3 + ⅓) = 7/6, 5/6: sd ⅓/√2, over √2.
    assert float(lppd_error(LOG_P)) == pytest.approx(1 / 6)
    # Var(⅔, 4/3) = 2/9 and Var(5/3, ⅓) = 8/9: mean 5/9, over 2·2.
    assert float(lppd_bias(LOG_P)) == pytest.approx(-5 / 36)


def test_one_draw_has_no_error_to_tell():
    assert float(lppd_error(LOG_P[:1])) == 0
    assert float(lppd_bias(LOG_P[:1])) == 0


@pytest.mark.parametrize(("shared", "per_row"), [(0.5, 0.0), (0.4, 0.4), (0.0, 0.6), (0.8, 0.1)])
def test_error_is_the_spread_of_lppd_over_repeated_draws(shared, per_row):
    sets = repeated(shared, per_row, draws=50)
    true_error = float(torch.stack([lppd(s) for s in sets]).std())
    estimated = float(torch.stack([lppd_error(s) for s in sets[:300]]).square().mean().sqrt())
    assert estimated == pytest.approx(true_error, rel=0.15)
    # An error that took rows for independent would fail here: by a factor of 4 to 5 where draws are shared.
    if shared >= 0.5:
        independent = float((sets[0].exp().std(0) / sets[0].exp().mean(0)).norm()) / 25 / math.sqrt(50)
        assert independent < true_error / 3


@pytest.mark.parametrize(("shared", "per_row"), [(0.5, 0.0), (0.0, 0.5)])
def test_bias_is_how_far_lppd_falls_short(shared, per_row):
    sets = repeated(shared, per_row, draws=20)
    limit = float((sets.mean((0, 1)) + (shared**2 + per_row**2) / 2).mean())  # log E exp of a Gaussian
    true_bias = float(torch.stack([lppd(s) for s in sets]).mean()) - limit
    estimated = float(torch.stack([lppd_bias(s) for s in sets[:300]]).mean())
    noise = float(torch.stack([lppd(s) for s in sets]).std()) / math.sqrt(len(sets))
    assert estimated == pytest.approx(true_bias, abs=3 * noise + 0.2 * abs(true_bias))


def test_nothing_underflows():
    log_p = LOG_P.double() - 5000
    assert float(lppd(log_p)) == pytest.approx(math.log(0.3) - 5000)
    assert float(lppd_error(log_p)) == pytest.approx(1 / 6)
    assert float(lppd_bias(log_p)) == pytest.approx(-5 / 36)


def test_a_row_that_every_draw_rules_out():
    log_p = torch.tensor([[0.0, -math.inf], [-1.0, -math.inf]])
    assert float(lppd(log_p)) == -math.inf
    assert math.isfinite(float(lppd_error(log_p)))
