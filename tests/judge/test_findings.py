"""Findings that fire, and that keep quiet."""

from __future__ import annotations

import math
import re

import pytest
import torch

from doxa import priors
from doxa.judge import findings
from doxa.judge.findings import kl_gradients
from doxa.likelihoods import categorical
from doxa.posteriors.delta import Delta
from doxa.posteriors.mean_field import MeanField
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles


def test_pulls_are_the_gradient_of_the_gaussian_kl():
    mean, scale = torch.tensor([0.3, -1.0, 0.0]), torch.tensor([0.5, 2.0, 1.5])
    mean_pull, scale_pull = kl_gradients(priors.gaussian(1.5, centre=0.1), mean, scale)
    assert torch.allclose(mean_pull, scale * (mean - 0.1) / 1.5**2, atol=1e-6)
    assert torch.allclose(scale_pull, (scale / 1.5).square() - 1, atol=1e-5)


@pytest.mark.parametrize(
    ("prior", "scale"),
    [
        (priors.gaussian(0.3), 0.3),
        (priors.gaussian(0.3, centre=0.0), 0.27),
        (priors.scale_mixture(0.5, 1.0, math.exp(-7)), 1.0),  # in the slab
        (priors.scale_mixture(0.5, 1.0, math.exp(-7)), math.exp(-7)),  # in the spike
        (priors.laplace(0.4), 0.5),
    ],
)
def test_collapse_is_seen_whatever_the_prior(prior, scale, make_belief, make_mlp):
    belief = make_belief(make_mlp(4, 3), categorical(), scale=scale, gain=0.0, prior=prior)
    finding = findings.collapsed(belief)
    assert finding is not None
    assert "100%" in finding


def test_collapse_onto_a_centre_is_seen(make_belief, make_mlp):
    belief = make_belief(make_mlp(4, 3), categorical(), scale=0.2)
    centre = belief.posterior.mean[: belief.layout.random]
    centred = make_belief(make_mlp(4, 3), categorical(), scale=0.2, prior=priors.gaussian(0.2, centre=centre))
    assert findings.collapsed(centred) is not None


@pytest.mark.parametrize(("scale", "gain"), [(0.02, 0.0), (0.02, 3.0), (1.0, 20.0), (3.0, 0.0)])
def test_no_collapse_where_mean_or_scale_has_moved(scale, gain, make_belief, make_mlp):
    belief = make_belief(make_mlp(4, 3), categorical(), scale=scale, gain=gain, prior=priors.gaussian(1.0))
    assert findings.collapsed(belief) is None


def test_no_collapse_without_a_prior_or_without_scale(make_belief, make_mlp):
    belief = make_belief(make_mlp(4, 3), categorical(), scale=1.0, gain=0.0)
    assert findings.collapsed(belief) is None
    wide = make_belief(make_mlp(4, 3), categorical(), scale=1.0, gain=0.0, prior=priors.gaussian(1.0))
    certain = wide.prune(1.0, biases=True)
    assert findings.collapsed(certain) is None


def test_constant_output():
    target = torch.nn.functional.one_hot(torch.arange(100) % 3, 3)
    flat = torch.tensor([[0.3, 0.3, 0.4]]).repeat(100, 1)
    assert "0.0%" in findings.constant(flat, target)
    assert findings.constant(torch.randn(100, 3).softmax(1), target) is None
    assert findings.constant(flat, target[:1].repeat(100, 1)) is None  # one class only: constant is right


def posterior(size: int = 5) -> MeanField:
    return MeanField(torch.zeros(size), torch.zeros(size))


def test_too_few_samples_says_how_many_would_do():
    source = torch.Generator().manual_seed(0)

    def log_p(draws: int) -> torch.Tensor:
        return -1 + 0.5 * torch.randn(draws, 1, generator=source).expand(draws, 40)

    finding = findings.too_few_samples(posterior(), log_p(40))
    needed = int(re.search(r"([\d,]+) draws would", finding).group(1).replace(",", ""))
    assert 1500 < needed < 5000  # 0.53 / √S = 0.01 at S = 2,800
    assert findings.too_few_samples(posterior(), log_p(2 * needed)) is None


def test_too_few_samples_by_bias_alone():
    # Rows of their own, so that errors average out over rows and biases do not.
    log_p = 0.8 * torch.randn(10, 20_000, generator=torch.Generator().manual_seed(0)) - 2
    finding = findings.too_few_samples(posterior(), log_p)
    needed = int(re.search(r"([\d,]+) draws would", finding).group(1).replace(",", ""))
    assert 25 < needed < 100  # (e^0.64 − 1) / 2S = 0.01 at S = 45


def test_draws_that_agree_are_enough():
    assert findings.too_few_samples(posterior(), torch.full((5, 30), -0.4)) is None
    # A twentieth of a tiny score is less than anyone can see.
    assert findings.too_few_samples(posterior(), -1e-6 * torch.rand(5, 30)) is None


def test_nobody_is_asked_for_more_than_there_is():
    log_p = -3 * torch.rand(2, 30, generator=torch.Generator().manual_seed(0))
    assert findings.too_few_samples(posterior(), log_p) is not None
    assert findings.too_few_samples(Particles(torch.randn(2, 5), 5), log_p) is None
    assert findings.too_few_samples(Delta(torch.zeros(5), 5), log_p[:1]) is None
    assert "ask for 50" in findings.too_few_samples(posterior(), log_p[:1])


def test_exhausted():
    point = Delta(torch.zeros(3), 3)
    assert findings.has_all_distinct_draws(point, 1)
    assert findings.has_all_distinct_draws(Particles(torch.zeros(4, 3), 3), 4)
    assert findings.has_all_distinct_draws(Mixture((point, point)), 2)
    assert not findings.has_all_distinct_draws(posterior(), 1000)
    assert not findings.has_all_distinct_draws(Mixture((posterior(), posterior(), posterior())), 1000)


@pytest.mark.parametrize(
    ("confidence", "accuracy", "over", "under"),
    [(0.95, 0.80, True, False), (0.80, 0.95, False, True), (0.90, 0.89, False, False), (0.89, 0.90, False, False)],
)
def test_confidence(confidence, accuracy, over, under):
    correct = torch.arange(2000) < accuracy * 2000
    confidences = torch.full((2000,), confidence)
    assert (findings.overconfident(confidences, correct) is not None) == over
    assert (findings.underconfident(confidences, correct) is not None) == under


def test_a_gap_that_nobody_would_see_is_not_worth_a_word():
    correct = torch.arange(200_000) < 0.89 * 200_000
    assert findings.overconfident(torch.full((200_000,), 0.90), correct) is None
    assert findings.underconfident(torch.full((200_000,), 0.88), correct) is None


def test_confidence_on_few_rows_is_given_the_benefit_of_the_doubt():
    correct = torch.arange(20) < 17
    assert findings.overconfident(torch.full((20,), 0.95), correct) is None


@pytest.mark.parametrize(
    ("coverage", "targets", "narrow", "wide"),
    [(0.80, 1000, True, False), (0.97, 1000, False, True), (0.89, 10**6, False, False), (0.80, 20, False, False)],
)
def test_intervals(coverage, targets, narrow, wide):
    assert (findings.too_narrow(coverage, 0.9, targets) is not None) == narrow
    assert (findings.too_wide(coverage, 0.9, targets) is not None) == wide


def test_rounded_up():
    assert [findings.round_up(n) for n in (3.2, 10, 99.1, 101, 2834)] == [4, 10, 100, 110, 2900]
