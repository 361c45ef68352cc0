"""Laws of the priors' room: every row of its table obeys them."""

from __future__ import annotations

import dataclasses
import math
import types
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate

from doxa import priors
from doxa.errors import BadInput
from doxa.flat import GaussianGradientInputs, PriorGradientKind, ScalePullback, mean_and_rho_gradients, mixture_slope
from doxa.nets import mlp
from doxa.posteriors import MeanField
from doxa.posteriors.divergence import closed_form, kl, monte_carlo, prior_gradients_of
from doxa.posteriors.mean_field import inverse_softplus
from doxa.random.keys import normal
from doxa.weights.layout import bind_prior, lay_out

EVERY = [pytest.param(p, id=f"{name}-{i}") for name, ps in priors.EXAMPLES.items() for i, p in enumerate(ps)]
# Integrals over every weight take their time: the first example of each, and the same about another centre.
ALL = [pytest.param(ps[0], id=name) for name, ps in priors.EXAMPLES.items()] + [
    pytest.param(dataclasses.replace(ps[0], centre=0.4), id=f"{name}-centred")
    for name, ps in priors.EXAMPLES.items()
    if dataclasses.is_dataclass(ps[0]) and hasattr(ps[0], "centre")
]


def centre(prior) -> float:
    return float(getattr(prior, "centre", 0.0))


def test_every_prior_of_the_table_has_examples() -> None:
    assert set(priors.EXAMPLES) == set(priors.TABLE)
    assert all(isinstance(p, priors.TABLE[name]) for name, ps in priors.EXAMPLES.items() for p in ps)


def density(prior: priors.gaussian, x: float) -> float:
    return math.exp(float(prior.log_prob(torch.tensor([x], dtype=torch.float64))))


@pytest.mark.parametrize("prior", ALL)
def test_integrates_to_one(prior) -> None:
    middle = centre(prior)
    edges = [-np.inf, middle - 1, middle - 0.02, middle, middle + 0.02, middle + 1, np.inf]
    total = sum(integrate.quad(lambda x: density(prior, x), a, b, limit=200)[0] for a, b in pairwise(edges))
    assert total == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("prior", EVERY)
def test_slope_is_the_derivative(prior) -> None:
    w = (torch.randn(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 0.5).requires_grad_()
    prior.log_prob(w).sum().backward()
    torch.testing.assert_close(prior.grad_log_prob(w.detach()), w.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("prior", EVERY)
def test_nothing_overflows_far_out(prior) -> None:
    w = torch.tensor([0.0, 20.0, -20.0, 1e4, -1e4])
    assert prior.log_prob(w).isfinite().all()
    assert prior.grad_log_prob(w).isfinite().all()


def test_slopes_are_the_textbook_ones() -> None:
    w = torch.tensor([-2.0, -0.5, 0.25, 3.0], dtype=torch.float64)
    torch.testing.assert_close(-priors.gaussian(0.5).grad_log_prob(w), w / 0.5**2)
    torch.testing.assert_close(-priors.laplace(0.15).grad_log_prob(w), w.sign() / 0.15)


def test_mixture_density_at_zero() -> None:
    # p(0) = (½/wide + ½/narrow) / √(2π)
    for wide, narrow, peak in ((0, 6, 80.67), (1, 7, 219.29), (2, 8, 596.09)):
        prior = priors.scale_mixture(0.5, math.exp(-wide), math.exp(-narrow))
        assert density(prior, 0.0) == pytest.approx(peak, abs=0.01)


def posterior(size: int = 50) -> MeanField:
    source = torch.Generator().manual_seed(1)
    mean = torch.randn(size, generator=source, dtype=torch.float64)
    scale = torch.rand(size, generator=source, dtype=torch.float64) * 0.8 + 0.01
    return MeanField(mean, inverse_softplus(scale))


def exact(q: MeanField, prior) -> float:
    """KL(q‖p) by numerical integration, weight by weight."""
    total = 0.0
    for m, s in zip(q.mean.tolist(), q.scale.tolist(), strict=True):

        def f(z: float, m: float = m, s: float = s) -> float:
            log_q = -0.5 * z * z - math.log(s) - 0.5 * math.log(2 * math.pi)
            log_p = float(prior.log_prob(torch.tensor([m + s * z], dtype=torch.float64)))
            return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) * (log_q - log_p)

        nearest = min(max((centre(prior) - m) / s, -8.5), 8.5)
        edges = [min(max(nearest + d, -9), 9) for d in (-0.2, -0.02, 0.0, 0.02, 0.2)]
        total += sum(integrate.quad(f, a, b, limit=200)[0] for a, b in zip([-9, *edges], [*edges, 9], strict=True))
    return total


@pytest.mark.parametrize("prior", ALL)
def test_monte_carlo_kl_is_within_three_standard_errors(prior) -> None:
    q = posterior(20)
    estimate = monte_carlo(q, prior, samples=4000, key=(5,))
    assert estimate.error > 0
    assert abs(estimate.value - exact(q, prior)) < 3 * estimate.error


@pytest.mark.parametrize("prior", [p for p in ALL if closed_form(p.values[0])])
def test_closed_kl_is_exact(prior) -> None:
    q = posterior(20)
    assert kl(q, prior).value == pytest.approx(exact(q, prior), rel=1e-6)
    assert kl(q, prior).error == 0


@pytest.mark.parametrize("prior", [p for p in ALL if closed_form(p.values[0])])
def test_closed_slopes_are_derivatives(prior) -> None:
    q = posterior(200)
    mean, log_scale = q.mean.clone().requires_grad_(), q.log_scale.clone().requires_grad_()
    prior.kl_from_gaussian(mean, log_scale.exp(), log_scale).sum().backward()
    by_mean, by_scale = torch.ones_like(q.mean), torch.ones_like(q.mean)
    prior.add_kl_slopes(q.mean, q.scale, 0.5, by_mean, by_scale)
    by_scale -= 0.5 / q.scale  # the entropy's slope
    torch.testing.assert_close(by_mean, 1 + 0.5 * mean.grad, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(by_scale, 1 + 0.5 * log_scale.grad / q.scale, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("prior", ALL)
def test_the_flat_passes_know_the_slopes_of_the_priors_they_take(prior) -> None:
    """−d log p/dw at the draw, or of its mean over q; the rest they leave to the priors."""
    q = posterior(200)
    prior_gradients = prior_gradients_of([prior], 200, q.mean)
    if prior_gradients.kind is PriorGradientKind.NONE:
        assert type(prior) not in (priors.gaussian, priors.scale_mixture) or torch.is_tensor(prior.centre)
        return
    epsilon = normal(200, (3,), q.mean)
    ones = torch.ones(1, 200, dtype=q.mean.dtype)
    rows = GaussianGradientInputs(
        q.mean[None],
        q.rho[None],
        ones,
        ones,
        epsilon[None],
        ScalePullback.TIMES_EPSILON,
        ones[0, :1] / 2,
        prior_gradients,
    )
    by_mean, by_rho = (g[0] for g in mean_and_rho_gradients(rows))
    by_scale = by_rho / q.rho.sigmoid() + 0.5 / q.scale  # without the entropy's slope
    if prior_gradients.kind is PriorGradientKind.MIXTURE:
        slope = prior.grad_log_prob(q.mean + q.scale * epsilon)
        torch.testing.assert_close(by_mean, 1 - 0.5 * slope)
        torch.testing.assert_close(by_scale, (1 - 0.5 * slope) * epsilon, rtol=1e-6, atol=1e-6)
    else:
        expected = torch.ones(200, dtype=q.mean.dtype), epsilon.clone()
        prior.add_kl_slopes(q.mean, q.scale, 0.5, *expected)
        torch.testing.assert_close((by_mean, by_scale), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("prior", [priors.gaussian(0.7), priors.scale_mixture()], ids=lambda p: type(p).__name__)
def test_a_prior_made_of_another_keeps_its_own_slopes(prior) -> None:
    """What a kernel knows of a class it does not know of those derived from it."""

    class Tilted(type(prior)):
        def grad_log_prob(self, w):
            return super().grad_log_prob(w) + 1

    fields = {f.name: getattr(prior, f.name) for f in dataclasses.fields(prior)}
    assert prior_gradients_of([prior], 5, torch.zeros(5)).kind is not PriorGradientKind.NONE
    assert prior_gradients_of([Tilted(**fields)], 5, torch.zeros(5)).kind is PriorGradientKind.NONE
    assert prior_gradients_of([prior, Tilted(**fields)], 5, torch.zeros(5)).kind is PriorGradientKind.NONE


def test_kl_of_a_large_layer_equals_torch_distributions() -> None:
    """On a 784×400 layer, in single precision."""
    torch.manual_seed(0)
    mean = torch.randn(784 * 400) * 0.05
    q = MeanField(mean, torch.empty(784 * 400).uniform_(-5, -4))
    for prior, torch_prior in (
        (priors.gaussian(1.0), torch.distributions.Normal(0.0, 1.0)),
        (priors.laplace(0.15), torch.distributions.Laplace(0.0, 0.15)),
    ):
        if isinstance(prior, priors.gaussian):
            expected = float(
                torch.distributions.kl_divergence(torch.distributions.Normal(mean, q.scale), torch_prior).double().sum()
            )
            assert kl(q, prior).value == pytest.approx(expected, rel=1e-5)
        else:
            estimate = monte_carlo(q, prior, samples=50, key=(1,))
            assert abs(kl(q, prior).value - estimate.value) < 3 * estimate.error


def test_kl_of_a_belief_from_itself_is_zero() -> None:
    q = posterior()
    assert kl(q, priors.gaussian(q.scale, centre=q.mean)).value == pytest.approx(0, abs=1e-9)


def test_kl_is_never_negative() -> None:
    for param in ALL:
        assert kl(posterior(), param.values[0], samples=200).value > 0


def test_mixture_cannot_be_matched_by_one_gaussian() -> None:
    """The floor of the KL from one Gaussian to the mixture, in nats a weight, found by search."""
    for wide, narrow, floor in ((0, 6, 0.665), (1, 6, 0.633), (0, 8, 0.687)):
        prior = priors.scale_mixture(0.5, math.exp(-wide), math.exp(-narrow))
        grid = [
            exact(
                MeanField(
                    torch.zeros(1, dtype=torch.float64),
                    inverse_softplus(torch.tensor([math.exp(e)], dtype=torch.float64)),
                ),
                prior,
            )
            for e in [*np.linspace(-narrow - 1, -narrow + 2, 25), *np.linspace(-wide - 1, -wide + 1, 15)]
        ]
        assert min(grid) == pytest.approx(floor, abs=0.01)


@pytest.mark.parametrize("prior", [p for p in EVERY if hasattr(p.values[0], "centre")])
def test_a_prior_can_be_centred_on_a_net(prior) -> None:
    net = mlp(3, (4,), 2)
    layout, start = lay_out(net)
    for middle in (net, net.state_dict(), dict(net.named_parameters())):
        centred = bind_prior(dataclasses.replace(prior, centre=middle), layout, start)
        assert torch.equal(centred.centre, start[: layout.random])
        w = start[: layout.random] + 0.3
        torch.testing.assert_close(centred.log_prob(w), prior.log_prob(torch.full_like(w, 0.3)), rtol=1e-3, atol=1e-3)


def test_a_prior_derived_from_another_has_no_closed_kl_unless_it_says_so() -> None:
    """A subclass that changes the density inherits a KL that is not its own."""

    class Narrower(priors.gaussian):
        def log_prob(self, w):
            return 2 * super().log_prob(w)

    class Renamed(priors.gaussian):
        """The same density under another name."""

    assert closed_form(Narrower(1.0)) is None
    assert closed_form(Renamed(1.0)) is not None
    plain = types.SimpleNamespace(log_prob=lambda w: -w, grad_log_prob=lambda w: -w)
    assert closed_form(plain) is None


def test_slopes_of_several_mixtures_at_once_are_those_of_each() -> None:
    """As a GPU takes them: columns of numbers, a row for each net."""
    mixtures = [priors.scale_mixture(0.25, 1.0, 0.01), priors.scale_mixture(0.5, 0.3, 0.001, centre=0.2)]
    w = torch.linspace(-2, 2, 401, dtype=torch.float64).repeat(2, 1)
    coefficients = prior_gradients_of(mixtures, 401, w).coefficients
    assert coefficients is not None
    slopes = mixture_slope(w, *coefficients.split(1, dim=1))
    for row, weights, prior in zip(slopes, w, mixtures, strict=True):
        torch.testing.assert_close(row, prior.grad_log_prob(weights), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "make", [priors.laplace, lambda t: priors.student_t(3.0, t), lambda t: priors.scale_mixture(0.5, t)]
)
def test_a_prior_with_one_scale_refuses_one_for_each_weight(make) -> None:
    with pytest.raises(BadInput, match=r"one number for all weights; got a tensor of shape \(5,\)"):
        make(torch.ones(5))
