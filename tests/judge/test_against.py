"""The laws of a belief against a reference."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from doxa import likelihoods, posteriors
from doxa.contracts import Record
from doxa.errors import BadInput
from doxa.judge import against
from doxa.posteriors.delta import Delta
from doxa.posteriors.mean_field import MeanField
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles
from doxa.predict.belief import Belief
from doxa.weights.layout import lay_out

X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])  # with weights N(0, 1): spreads 1, 1, √2, √2


def belief(rows: Tensor, likelihood: Any = None, outputs: int = 1, record: Record | None = None) -> Belief:
    """Functions x·w for rows of weights w [S, 2 · outputs]."""
    net = nn.Linear(2, outputs, bias=False)
    layout, _ = lay_out(net)
    posterior = posteriors.samples(rows, layout.random)
    return Belief(net, likelihood or likelihoods.gaussian(0.1), posterior, layout, ({},), record=record or Record())


def normals(count: int, seed: int, columns: int = 2, mean: float = 0.0, std: float = 1.0) -> Tensor:
    return mean + std * torch.randn(count, columns, generator=torch.Generator().manual_seed(seed))


def test_functions_that_are_gaussians_have_the_closed_distances() -> None:
    """Every row's function is N(m Σxⱼ, s² Σxⱼ²), so all distances are known."""
    reference = belief(normals(20_000, 0))
    verdict = against(belief(normals(20_000, 1, mean=0.5, std=0.6)), reference, X, samples=20_000)
    shift, spread = 0.5 * X.sum(1), X.square().sum(1).sqrt()
    distance = (shift.square() + (0.4 * spread).square()).sqrt()
    expected = {
        "wasserstein_2": float(distance.mean()),
        "wasserstein_2_relative": float((distance / spread).mean()),
        "std_ratio": 0.6,
    }
    normal = torch.distributions.Normal(shift, 0.6 * spread)
    for band, z in ((50, 0.67449), (90, 1.64485)):
        expected[f"mass_in_{band}"] = float((normal.cdf(z * spread) - normal.cdf(-z * spread)).mean())
    for name, value in expected.items():
        estimate = verdict.scores[name]
        assert 0 < estimate.error < 0.02, name
        assert abs(estimate.value - value) < 4 * estimate.error + 1e-3, name


def test_a_reference_against_its_other_half_is_near_zero_and_nearer_with_more_draws() -> None:
    distances = []
    for count in (100, 1000, 10_000):
        verdict = against(belief(normals(count, 0)), belief(normals(count, 1)), X, samples=count)
        distances.append(verdict["wasserstein_2_relative"])
        assert verdict["wasserstein_2"] < 2 * verdict["wasserstein_2_by_chance"]
        assert "Not told apart" in verdict.findings[0]
        assert verdict["mass_in_50"] == pytest.approx(0.5, abs=3 / math.sqrt(count))
    assert distances[0] > 2 * distances[1] > 4 * distances[2]
    assert distances[2] < 0.05


def test_a_belief_that_is_too_narrow_is_told_apart() -> None:
    verdict = against(belief(normals(500, 0, std=0.2)), belief(normals(500, 1)), X)
    assert verdict["wasserstein_2"] > 5 * verdict["wasserstein_2_by_chance"]
    assert verdict["std_ratio"] == pytest.approx(0.2, abs=0.03)
    assert verdict["mass_in_50"] > 0.95
    assert not verdict.findings
    assert verdict.rows == 4


def test_a_point_is_as_far_as_the_reference_is_wide() -> None:
    """W₂² to a point is the mean squared distance; its spread is none, and it has no error of its own."""
    rows = normals(4000, 0)
    point = replace(belief(rows), posterior=posteriors.delta(torch.zeros(2), 2))
    verdict = against(point, belief(rows), X, samples=4000)
    outputs = rows @ X.T
    assert verdict["wasserstein_2"] == pytest.approx(float(outputs.square().mean(0).sqrt().mean()), rel=1e-5)
    assert verdict["std_ratio"] == 0
    assert verdict.scores["wasserstein_2"].error > 0, "the reference's"


def test_errors_tell_how_far_scores_move() -> None:
    """The spread over forty repetitions is what each of them claims."""
    verdicts = [against(belief(normals(300, s)), belief(normals(300, 100 + s)), X, samples=300) for s in range(40)]
    for name in ("std_ratio", "mass_in_50"):
        spread = torch.tensor([v[name] for v in verdicts]).std()
        claimed = torch.tensor([v.scores[name].error for v in verdicts]).mean()
        assert float(spread) == pytest.approx(float(claimed), rel=0.35), name


def test_errors_of_a_mixture_are_not_how_far_its_members_lie_apart() -> None:
    """Two members that are sure of opposite classes: their mean hardly moves from one lot of draws to the next."""
    categorical = likelihoods.categorical()
    net = nn.Linear(2, 2, bias=False)
    layout, _ = lay_out(net)
    members = tuple(MeanField(sign * torch.tensor([1.0, 1.0, -1.0, -1.0]), torch.full((4,), -3.0)) for sign in (1, -1))
    mixture = Belief(net, categorical, Mixture(members), layout, ({}, {}))
    reference = belief(members[0].mean + 0.1 * normals(400, 0, 4), categorical, 2)  # on the side of one of them
    verdicts = [against(mixture, reference, X, samples=200, seed=seed) for seed in range(12)]
    spread = float(torch.tensor([v["total_variation"] for v in verdicts]).std())
    own = [v.scores["total_variation"].error for v in verdicts]
    assert spread < 0.002
    assert max(own) < 0.01, "the members' own spread, and the reference's"


def test_a_mixture_of_points_is_all_that_it_believes() -> None:
    net = nn.Linear(2, 1, bias=False)
    layout, _ = lay_out(net)
    members = tuple(Delta(row, layout.random) for row in normals(5, 0))
    points = Belief(net, likelihoods.gaussian(0.1), Mixture(members), layout, ({},) * 5)
    reference = belief(normals(400, 1))
    error = against(points, reference, X, samples=400).scores["std_ratio"].error
    particles = Belief(net, likelihoods.gaussian(0.1), Particles(normals(5, 0), layout.random), layout, ({},) * 5)
    assert error == pytest.approx(against(particles, reference, X, samples=400).scores["std_ratio"].error)


def test_classes_are_compared_by_averaged_probabilities() -> None:
    """By hand, of two draws each."""
    categorical = likelihoods.categorical()
    first, second = (normals(6, seed, 6, std=2.0) for seed in (0, 1))
    verdict = against(belief(first, categorical, 3), belief(second, categorical, 3), X, samples=6)
    p, q = (torch.einsum("sij,bj->sbi", rows.view(6, 3, 2), X).softmax(-1).mean(0) for rows in (first, second))
    assert verdict["agreement"] == float((p.argmax(1) == q.argmax(1)).double().mean())
    assert verdict["total_variation"] == pytest.approx(float(0.5 * (p - q).abs().sum(1).mean()), abs=1e-6)
    same = against(belief(first, categorical, 3), belief(first, categorical, 3), X, samples=6)
    assert (same["agreement"], same["total_variation"]) == (1, 0)
    assert same["total_variation_by_chance"] > 0


def test_yes_or_no_is_two_classes() -> None:
    bernoulli = likelihoods.bernoulli()
    first, second = normals(50, 0), normals(50, 1, mean=2.0)
    verdict = against(belief(first, bernoulli), belief(second, bernoulli), X, samples=50)
    p, q = ((rows @ X.T).sigmoid().mean(0) for rows in (first, second))
    assert verdict["total_variation"] == pytest.approx(float((p - q).abs().mean()), abs=1e-6)


def test_a_reference_that_has_not_mixed_is_none() -> None:
    record = Record({"sampled": {"r_hat": 1.2}})
    verdict = against(belief(normals(50, 0, mean=9.0)), belief(normals(50, 1), record=record), X)
    assert any("R-hat is up to 1.200" in finding for finding in verdict.findings)
    for sampled in ({"r_hat": None}, {"acceptance": [0.0]}):
        told = against(belief(normals(50, 0)), belief(normals(50, 1), record=Record({"sampled": sampled})), X)
        assert any("tells no R-hat" in finding for finding in told.findings)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (belief(normals(9, 0), likelihoods.bernoulli()), "both must predict the same"),
        (belief(normals(9, 0, 4), outputs=2), "both must predict the same"),
        (belief(normals(3, 0)), "the reference has 3 draws"),
    ],
)
def test_what_cannot_be_compared_is_refused(other: Belief, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        against(belief(normals(9, 0)), other, X)
