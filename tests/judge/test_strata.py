"""Errors of the scores of mixtures: their draws are dealt evenly, and how far members lie apart is no error."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from doxa import Belief, judge
from doxa.judge import crps_gaussian_mixture, lppd, lppd_bias, lppd_error
from doxa.judge.metrics.half_sampling import half_sampling_error
from doxa.judge.metrics.predictive_density import standard_error
from doxa.judge.strata import strata_of
from doxa.likelihoods import categorical, gaussian
from doxa.posteriors.delta import Delta
from doxa.posteriors.mean_field import MeanField
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles
from doxa.posteriors.samples import Samples
from doxa.weights.layout import lay_out

PER_MEMBER = 6
MEMBERS = torch.tensor([-3.0, 0.5, 4.0])  # far apart, beside a spread of one
STRATA = torch.arange(3).repeat_interleave(PER_MEMBER)


def dealt(seed: int, rows: int = 1) -> Tensor:
    """Draws [S, rows] of three members, six of each."""
    noise = torch.randn(3 * PER_MEMBER, rows, generator=torch.Generator().manual_seed(seed))
    return MEMBERS.repeat_interleave(PER_MEMBER)[:, None] + noise


def root_mean_square(errors: list[Tensor]) -> float:
    return float(torch.stack(errors).square().mean().sqrt())


def true_spread(values: list[Tensor]) -> float:
    return float(torch.stack(values).std())


def test_of_a_mean() -> None:
    """error² = Σₖ (1/3)² / 6 = 1/18: the means play no part."""
    sets = [dealt(seed)[:, 0] for seed in range(2000)]
    told = root_mean_square([standard_error(d, strata=STRATA) for d in sets])
    assert told == pytest.approx(18**-0.5, rel=0.03)
    assert told == pytest.approx(true_spread([d.mean() for d in sets]), rel=0.05)
    assert root_mean_square([standard_error(d) for d in sets]) > 2 * told


def test_of_a_mean_of_members_of_unequal_weight() -> None:
    weights = torch.tensor([0.5, 0.3, 0.2]).repeat_interleave(PER_MEMBER) / PER_MEMBER
    sets = [dealt(seed)[:, 0] for seed in range(2000)]
    told = root_mean_square([standard_error(d, weights, STRATA) for d in sets])
    assert told == pytest.approx((0.38 / PER_MEMBER) ** 0.5, rel=0.03)
    assert told == pytest.approx(true_spread([weights @ d for d in sets]), rel=0.05)


@pytest.mark.parametrize("per_member", [2, 5, 6])
def test_half_sampling_of_a_mean(per_member: int) -> None:
    strata = torch.arange(3).repeat_interleave(per_member)

    def draws(seed: int) -> Tensor:
        noise = torch.randn(3 * per_member, generator=torch.Generator().manual_seed(seed))
        return MEMBERS.repeat_interleave(per_member) + noise

    told = root_mean_square(
        [half_sampling_error(lambda i, d=d: d[i].mean()[None], len(d), strata) for d in map(draws, range(400))]
    )
    assert told == pytest.approx((3 * per_member) ** -0.5, rel=0.06)


def test_half_sampling_of_strata_of_unequal_counts() -> None:
    """Of an odd number a draw is left out, or how far the strata lie apart would count; errors are no smaller."""
    counts = torch.tensor([2, 2, 2, 5])
    strata = torch.arange(4).repeat_interleave(counts)
    weights = (torch.tensor([1 / 6, 1 / 6, 1 / 6, 1 / 2]) / counts).repeat_interleave(counts)
    middles = torch.tensor([0.0, 0.0, 0.0, 10.0]).repeat_interleave(counts)

    def told(seed: int) -> tuple[Tensor, Tensor]:
        draws = middles + 0.01 * torch.randn(len(strata), generator=torch.Generator().manual_seed(seed))

        def mean(index: Tensor) -> Tensor:
            return (weights[index] @ draws[index] / weights[index].sum())[None]

        return half_sampling_error(mean, len(draws), strata)[0], standard_error(draws, weights, strata)

    halves, exact = (root_mean_square(list(errors)) for errors in zip(*map(told, range(300)), strict=True))
    assert exact < halves < 1.3 * exact


def test_of_densities() -> None:
    """Of both the error and the bias, beside what draws made anew many times show."""
    sets = [-0.5 * (dealt(seed, rows=3) / 4).square() for seed in range(1500)]
    values = [lppd(d) for d in sets]
    told = root_mean_square([lppd_error(d, strata=STRATA) for d in sets])
    assert told == pytest.approx(true_spread(values), rel=0.15)
    assert root_mean_square([lppd_error(d) for d in sets]) > 1.3 * told
    endless = lppd(torch.cat([d.view(3, PER_MEMBER, 3) for d in sets], 1).flatten(0, 1))
    bias = float(torch.stack([lppd_bias(d, strata=STRATA) for d in sets]).mean())
    assert bias == pytest.approx(float(torch.stack(values).mean() - endless), rel=0.3)


def test_of_crps() -> None:
    y = torch.tensor([1.0])
    told, values = [], []
    for seed in range(600):
        estimate = crps_gaussian_mixture(dealt(seed), torch.ones(1), y, strata=STRATA)
        told.append(torch.tensor(estimate.error))
        values.append(torch.tensor(estimate.value))
    assert root_mean_square(told) == pytest.approx(true_spread(values), rel=0.12)


def test_a_member_of_one_draw_has_no_spread_of_its_own() -> None:
    draws, strata = torch.tensor([0.0, 1.0, 5.0]), torch.tensor([0, 0, 1])
    assert float(standard_error(draws, strata=strata)) == float(standard_error(draws))


def linear(mean: float, scale: float) -> MeanField:
    """A belief about the weight of y = w x."""
    return MeanField(torch.tensor([mean]), torch.tensor([scale]).expm1().log())


def test_members_are_told_apart_where_each_yields_what_it_is_asked_for() -> None:
    one, other = linear(0.0, 0.1), linear(1.0, 0.1)
    assert strata_of(one, 10, 10) is None
    assert torch.equal(strata_of(Mixture((one, other)), 5, 6), torch.tensor([0, 0, 0, 1, 1, 1]))
    nested = Mixture((one, Mixture((one, other))))
    assert torch.equal(strata_of(nested, 8, 8), torch.tensor([0, 0, 0, 0, 1, 1, 2, 2]))
    assert strata_of(Mixture((one, Delta(torch.ones(1), 1))), 8, 5) is None
    # Ten are asked of each, and thirty come: of a point one, of particles all nineteen.
    odd = Mixture((Delta(torch.ones(1), 1), Particles(torch.ones(19, 1), 1), one))
    assert strata_of(odd, 30, 30) is None
    kept = Mixture((Samples(torch.ones(50, 1), 1), one))
    assert torch.equal(strata_of(kept, 4, 4), torch.tensor([0, 0, 1, 1]))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_judging_a_mixture_tells_how_its_scores_move(task: str) -> None:
    """The told errors are the spread of the scores over seeds, not that of the members."""
    x = torch.linspace(-1, 1, 40)[:, None]
    if task == "regression":
        likelihood, y, net, names = gaussian(0.5), x.clone(), nn.Linear(1, 1, bias=False), ("nll", "crps", "gibbs_nll")
        posterior = Mixture((linear(-1.0, 0.2), linear(2.0, 0.2)))
    else:
        likelihood, y, net = categorical(), (x[:, 0] > 0).long(), nn.Linear(1, 2, bias=False)
        means = torch.tensor([[2.0, -2.0], [-4.0, 3.0]])
        posterior = Mixture(tuple(MeanField(m, torch.full((2,), -1.0)) for m in means))
        names = ("nll", "brier", "gibbs_nll")
    layout, _ = lay_out(net)
    belief = Belief(net, likelihood, posterior, layout, ({}, {}))
    verdicts = [judge(belief, (x, y), samples=20, seed=seed).scores for seed in range(60)]
    for name in names:
        spread = torch.tensor([scores[name].value for scores in verdicts]).std()
        told = root_mean_square([torch.tensor(scores[name].error) for scores in verdicts])
        assert told == pytest.approx(float(spread), rel=0.35), name
