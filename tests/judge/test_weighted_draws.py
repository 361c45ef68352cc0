"""Scores of draws that do not count alike: a draw of weight three is three draws."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from doxa import Belief, Draws, judge
from doxa.judge import crps_gaussian_mixture, gibbs_nll, lppd, lppd_bias, lppd_error
from doxa.judge.attacks.fgsm import fgsm
from doxa.judge.recalibration import calibration_levels
from doxa.judge.summary import skill_and_nll
from doxa.likelihoods import categorical, gaussian
from doxa.posteriors.delta import Delta
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles
from doxa.weights.layout import lay_out

TIMES = torch.tensor([3, 1, 2, 4])
SHARES = TIMES / 10


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_densities():
    log_p = -normal(4, 30).abs()
    repeated = log_p.repeat_interleave(TIMES, 0)
    for score in (lppd, gibbs_nll):
        assert float(score(log_p, SHARES)) == pytest.approx(float(score(repeated)), rel=1e-6)
        assert float(score(log_p, SHARES)) != pytest.approx(float(score(log_p)), rel=1e-3)


@pytest.mark.parametrize("score", [lppd_error, lppd_bias])
def test_equal_weights_have_the_usual_errors(score):
    log_p = -normal(9, 30).abs()
    assert float(score(log_p, torch.full((9,), 1 / 9))) == pytest.approx(float(score(log_p)), rel=1e-6)


def test_the_error_of_weighted_draws_is_their_spread():
    """One draw of weight a half and ten of a twentieth, anew many times."""
    weights = torch.tensor([0.5] + [0.05] * 10)
    sets = [-2 + 0.2 * normal(11, 1, seed=s) for s in range(3000)]
    true_error = float(torch.stack([lppd(s, weights) for s in sets]).std())
    estimated = float(torch.stack([lppd_error(s, weights) for s in sets]).square().mean().sqrt())
    assert estimated == pytest.approx(true_error, rel=0.25)
    ignoring = float(torch.stack([lppd_error(s) for s in sets]).square().mean().sqrt())
    assert ignoring < 0.7 * true_error


def test_crps():
    location, scale, y = normal(4, 20), 0.5 + normal(4, 20, seed=1).abs(), normal(20, seed=2)
    weighted = crps_gaussian_mixture(location, scale, y, SHARES)
    repeated = crps_gaussian_mixture(location.repeat_interleave(TIMES, 0), scale.repeat_interleave(TIMES, 0), y)
    assert weighted.value == pytest.approx(repeated.value, rel=1e-6)
    equal = crps_gaussian_mixture(location, scale, y, torch.full((4,), 0.25))
    plain = crps_gaussian_mixture(location, scale, y)
    assert (equal.value, equal.error) == pytest.approx((plain.value, plain.error), rel=1e-6)


def test_summaries_and_levels():
    y = torch.arange(20) % 3
    draws = Draws(2 * normal(4, 20, 3), categorical(), {}, SHARES)
    repeated = Draws(draws.outputs.repeat_interleave(TIMES, 0), categorical(), {})
    assert skill_and_nll(draws, y) == pytest.approx(skill_and_nll(repeated, y), rel=1e-5)
    target, outputs = normal(20, 1, seed=3), normal(4, 20, 1)
    levels = calibration_levels(outputs.repeat_interleave(TIMES, 0), 0.5, target)
    torch.testing.assert_close(calibration_levels(outputs, 0.5, target, SHARES), levels)
    draws = Draws(outputs, gaussian(0.5), {}, SHARES)
    repeated = Draws(outputs.repeat_interleave(TIMES, 0), gaussian(0.5), {})
    assert skill_and_nll(draws, target) == pytest.approx(skill_and_nll(repeated, target), rel=1e-5)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_point_counts_as_much_as_three_particles(kind):
    """Judged and attacked as the six particles in which it stands three times."""
    net = nn.Linear(4, 3)
    layout, start = lay_out(net)
    particles = start + normal(3, len(start))
    likelihood, y = (categorical(), torch.arange(50) % 3) if kind == "classes" else (gaussian(0.5), normal(50, 3))
    mixed = Mixture((Delta(start, layout.random), Particles(particles, layout.random)))
    flat = Particles(torch.cat([start.expand(3, -1), particles]), layout.random)
    few, many = Belief(net, likelihood, mixed, layout, ({},) * 4), Belief(net, likelihood, flat, layout, ({},) * 6)
    x, far = torch.rand(50, 4), 3 + torch.rand(20, 4)
    judgement, expected = (judge(b, (x, y), out_of_distribution=far) for b in (few, many))
    assert judgement.samples == 4
    assert list(judgement.scores) == list(expected.scores)
    for name in judgement.scores:
        assert judgement[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-5), name
    torch.testing.assert_close(fgsm(few, x, y, 0.1), fgsm(many, x, y, 0.1))
