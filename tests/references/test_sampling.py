"""The laws of the chains: their draws are those of the target, and of no other."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from doxa.random.keys import seed_of
from doxa.references.diagnostics import ess_mean
from doxa.references.mass import DiagonalMass, window_ends
from doxa.references.sampling import Sampling
from doxa.references.settings import HMCSettings
from doxa.references.step_size import DualAveraging
from doxa.references.transition import Rule, metropolis
from for_references import GaussianTarget, covariance, sample

ERRORS = 4  # standard errors: of forty numbers one is beyond by chance once in four hundred times


def off_by(values: Tensor, expected: Tensor) -> Tensor:
    """How many Monte-Carlo standard errors the mean of draws [chains, draws, D] is from what it should be [D]."""
    flat = values.flatten(0, 1)
    return (flat.mean(0) - expected).abs() / (flat.std(0) / ess_mean(values).sqrt())


def moments_off_by(sampling: Sampling, target: GaussianTarget) -> float:
    """The same of means and of all second moments, the worst of them."""
    draws = torch.stack(sampling.draws, 1)
    dimension = draws.shape[2]
    products = (draws[..., :, None] * draws[..., None, :]).flatten(2)
    zero = torch.zeros(dimension, dtype=draws.dtype)
    return max(float(off_by(draws, zero).max()), float(off_by(products, target.covariance.flatten()).max()))


@pytest.mark.parametrize(
    ("dimension", "correlation", "widest"),
    [(1, 0.0, 1.0), (2, 0.9, 1.0), (5, -0.2, 1.0), (4, 0.5, 100.0), (20, 0.3, 10.0)],
)
def test_gaussians_of_every_shape_are_sampled(dimension: int, correlation: float, widest: float) -> None:
    target = GaussianTarget(covariance(dimension, correlation, widest), 32, start=3.0)
    sampling = sample(target)
    assert moments_off_by(sampling, target) < ERRORS
    assert not sampling.divergences.any()


def everywhere(loss: Tensor, uniform: Tensor) -> Tensor:
    """A mutant: every end of a trajectory is accepted."""
    return torch.ones_like(loss, dtype=torch.bool)


def colder(loss: Tensor, uniform: Tensor) -> Tensor:
    """A mutant: energies count half as much again."""
    return uniform.log() < 1.5 * loss


@pytest.mark.parametrize(
    ("rule", "right"), [(metropolis, True), (everywhere, False), (colder, False)], ids=["right", "always", "tempered"]
)
def test_a_wrong_decision_is_found_out(rule: Rule, right: bool) -> None:
    """With steps so large that the end of a trajectory has lost or gained energy, the decision matters."""
    target = GaussianTarget(covariance(3, 0.3), 64)
    sampling = sample(target, rule, warmup=0, step_size=1.3, draws=400, steps=4)
    assert (moments_off_by(sampling, target) < ERRORS) is right


@pytest.mark.parametrize("acceptance", [0.6, 0.8, 0.95])
def test_dual_averaging_finds_where_acceptance_is_what_was_asked_for(acceptance: float) -> None:
    """With accepted ~ Bernoulli(exp(−ε)) the step must go to ε = −log acceptance, from far below and from far above."""
    source = torch.Generator().manual_seed(0)
    steps = DualAveraging(torch.tensor([1e-4] * 50 + [1e2] * 50), acceptance)
    for _ in range(2000):
        steps.update((torch.rand(100, generator=source, dtype=torch.float64) < (-steps.step_size).exp()).double())
    reached = (-steps.averaged).exp()
    assert float(reached.mean()) == pytest.approx(acceptance, abs=0.03)
    assert float(reached.std()) < 0.05


def test_chains_are_accepted_about_as_often_as_was_asked_for() -> None:
    """More often, for the acceptance of a mean step is above the mean over steps; and the more, the more was asked."""
    spread = covariance(20, 0.5, 5.0)
    means = []
    for acceptance in (0.65, 0.8, 0.95):
        sampling = sample(GaussianTarget(spread, 32), acceptance=acceptance, warmup=250, draws=60)
        means.append(float(sampling.accepted.mean()) / 60)
        assert acceptance - 0.03 < means[-1] < acceptance + 0.2
    assert means == sorted(means)


def test_no_more_energy_is_gained_than_lost() -> None:
    """E[exp(H before − H after)] = 1 at equilibrium, since volumes are kept: Jarzynski's equality of a closed way."""
    losses: list[Tensor] = []

    def watched(loss: Tensor, uniform: Tensor) -> Tensor:
        losses.append(loss)
        return metropolis(loss, uniform)

    sample(GaussianTarget(covariance(3, 0.2), 200), watched, warmup=0, step_size=0.9, draws=120)
    weights = torch.stack(losses[20:]).exp()
    error = weights.std() / (ess_mean(weights.T) ** 0.5)
    assert float((weights.mean() - 1).abs() / error) < ERRORS


def test_masses_make_weights_of_all_sizes_alike() -> None:
    """With them the step is of order one; without, as small as the narrowest weight."""
    spread = covariance(6, 0.0, 1000.0)
    sampling, without = (sample(GaussianTarget(spread, 16), adapt_mass=on, warmup=300, draws=1) for on in (True, False))
    shape = sampling.mass.inverse_mass / spread.diag()
    assert float(shape.max() / shape.min()) < 2
    unit = float(sampling.step_size.median()) * float(shape.median()) ** 0.5
    assert 0.3 < unit < 2
    assert float(without.step_size.median()) < 3


def test_one_lost_chain_does_not_decide_on_the_masses() -> None:
    mass = DiagonalMass(torch.zeros(5, 2, dtype=torch.float64))
    source = torch.Generator().manual_seed(0)
    for _ in range(400):
        states = torch.randn(5, 2, generator=source, dtype=torch.float64) * torch.tensor([1.0, 3.0])
        states[4] *= 1e6
        mass.observe(states)
    mass.adopt()
    torch.testing.assert_close(mass.inverse_mass, torch.tensor([1.0, 9.0], dtype=torch.float64), rtol=0.2, atol=0)


@pytest.mark.parametrize("warmup", [0, 10, 40, 100, 150, 500, 1000, 2000])
def test_windows_lie_within_the_warm_up(warmup: int) -> None:
    ends = window_ends(warmup)
    starts = [round(0.15 * warmup), *ends[:-1]]
    lengths = [end - start for start, end in zip(starts, ends, strict=False)]
    assert ends == sorted(set(ends))
    assert all(length >= 15 for length in lengths)
    assert all(after >= 2 * before for before, after in pairwise(lengths))
    assert not ends or ends[-1] == warmup - round(0.3 * warmup)


def test_trajectories_have_the_lengths_that_were_asked_for() -> None:
    seeds = [seed_of((0, "chain", 0))]
    target = GaussianTarget(covariance(1, 0.0), 1)
    sampling = Sampling(target, HMCSettings(steps=8, jitter=0.25, step_size=0.1), seeds)
    lengths = [sampling.trajectory_length(n) for n in range(600)]
    assert set(lengths) == {6, 7, 8, 9, 10}
    assert min(lengths.count(n) for n in set(lengths)) > 80
    still = Sampling(target, HMCSettings(steps=8, jitter=0.0, step_size=0.1), seeds)
    assert {still.trajectory_length(n) for n in range(50)} == {8}


def test_divergences_are_counted_and_stay_where_they_were() -> None:
    target = GaussianTarget(covariance(2, 0.0), 4)
    before = target.position.clone()
    sampling = sample(target, warmup=0, step_size=40.0, draws=5)
    assert sampling.divergences.tolist() == [5.0] * 4
    assert torch.equal(target.position, before)
    assert float(sampling.accepted.sum()) == 0


def test_a_chain_is_the_same_alone() -> None:
    """But for rounding, without masses, which chains share."""
    spread = covariance(4, 0.5, 3.0)
    together = sample(GaussianTarget(spread, 6), adapt_mass=False, warmup=25, draws=10)
    alone = GaussianTarget(spread, 6)
    alone.position, alone.slope = alone.position[4:5].clone(), alone.slope[4:5].clone()
    sampling = Sampling(alone, together.settings, [seed_of((1, "chain", 4))])
    while not sampling.finished:
        sampling.advance()
    torch.testing.assert_close(sampling.step_size, together.step_size[4:5], rtol=1e-5, atol=0)
    torch.testing.assert_close(torch.stack(sampling.draws)[:, 0], torch.stack(together.draws)[:, 4], rtol=0, atol=1e-4)
