"""Kernel estimates of priors, as the authors drew figures 2 and 3: SciPy's own, of the right draws, at their peaks."""

from __future__ import annotations

import math

import pytest
import scipy.stats
import torch

from doxa import priors
from doxa_replicate import FAIL, TABLE, ReplicationOptions, perform
from doxa_replicate.weight_uncertainty import mixture_densities, prior_densities
from doxa_replicate.weight_uncertainty.kernel_estimate import KernelEstimate, estimate


def test_a_kernel_estimate_is_scipy_s() -> None:
    draws = torch.randn(500, generator=torch.Generator().manual_seed(0), dtype=torch.float64) ** 3
    ours, scipys = KernelEstimate(draws), scipy.stats.gaussian_kde(draws.numpy())
    w = torch.linspace(-2, 2, 301, dtype=torch.float64)
    assert ours.bandwidth == pytest.approx(math.sqrt(scipys.covariance.item()))
    torch.testing.assert_close(ours.density(w), torch.from_numpy(scipys(w.numpy())))
    assert ours.within(0.3) == pytest.approx(scipys.integrate_box_1d(-0.3, 0.3))


def test_the_printed_peaks_are_those_of_smoothed_draws() -> None:
    """At the authors' own number of draws: what the document has is no peak of a density."""
    full = ReplicationOptions(full=True)
    for wide in (0, 2):
        for narrow, printed in zip(mixture_densities.NARROW, mixture_densities.PRINTED[str(wide)], strict=True):
            prior = priors.scale_mixture(0.5, math.exp(-wide), math.exp(-narrow))
            assert estimate(prior, 0, full).peak() == pytest.approx(printed, rel=0.03)


@pytest.mark.parametrize("name", prior_densities.PRIORS)
def test_draws_of_a_prior_are_its_own(name: str) -> None:
    prior = prior_densities.PRIORS[name]
    draws = estimate(prior, 1, ReplicationOptions(full=True)).draws
    for d in (0.0005, 0.05, 0.15, 1.0):
        mass = prior_densities.mass_between(prior, 0.0, d)
        error = math.sqrt(mass * (1 - mass) / len(draws))
        assert abs(float((draws.abs() < d).double().mean()) - mass) < 4 * error
        assert abs(float((draws[draws > 0] < d).double().mean()) - mass) < 6 * error


def test_what_is_subtle_when_smoothed_is_not_so_in_the_density() -> None:
    numbers = perform(TABLE["weight-uncertainty/figure-2"], ReplicationOptions())["numbers"]
    for by_column in numbers["growth_of_the_peak"].values():
        assert by_column["as written"]["mean"] > 6
        assert by_column["as written"]["verdict"] == FAIL
        assert by_column["as run"]["mean"] < 0.5
