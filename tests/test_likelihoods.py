"""Likelihoods by name: densities against torch's own, gradients at the edge, entropies against integration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, Independent, MixtureSameFamily, Normal

from doxa import Draws, likelihoods

LEADING = [(), (4,), (2, 3)]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def labels(*shape: int, classes: int) -> Tensor:
    return torch.randint(0, classes, shape, generator=torch.Generator().manual_seed(9))


def summed(log_p: Tensor, positions: int) -> Tensor:
    """Over the axes behind the rows."""
    return log_p.flatten(-positions).sum(-1) if positions else log_p


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize(("positions", "axis"), [((), -1), ((5,), -1), ((2, 3), -1), ((5,), -2), ((2, 3), -3)])
def test_categorical_is_torch_s(leading, positions, axis: int) -> None:
    likelihood = likelihoods.categorical(axis)
    logits = 3 * normal(*leading, 6, *positions, 4)
    output = logits.movedim(-1, axis)
    y = likelihood.check(output[(0,) * len(leading)], labels(6, *positions, classes=4))
    expected = summed(Categorical(logits=logits).log_prob(y), len(positions))
    log_p = likelihood.log_prob(output, y, {})
    assert log_p.shape == (*leading, 6)
    torch.testing.assert_close(log_p, expected)
    torch.testing.assert_close(likelihood.mean(output, {}).movedim(axis, -1), Categorical(logits=logits).probs)
    p = logits.softmax(-1)
    torch.testing.assert_close(likelihood.variance(output, {}).movedim(axis, -1), p * (1 - p))


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
def test_bernoulli_is_torch_s(leading, shape) -> None:
    likelihood, output = likelihoods.bernoulli(), 3 * normal(*leading, 6, *shape)
    y = likelihood.check(output[(0,) * len(leading)], labels(6, *shape, classes=2))
    truth = Bernoulli(logits=output)
    log_p = likelihood.log_prob(output, y, {})
    assert log_p.shape == (*leading, 6)
    torch.testing.assert_close(log_p, summed(truth.log_prob(y), len(shape)))
    torch.testing.assert_close(likelihood.mean(output, {}), truth.mean)
    torch.testing.assert_close(likelihood.variance(output, {}), truth.variance)


def gaussian(name: str, leading: tuple[int, ...], shape: tuple[int, ...]):
    """A Gaussian likelihood, outputs for it, its own parameters, and the Normal that it should be."""
    location = normal(*leading, 6, *shape)
    if name == "gaussian":
        return likelihoods.gaussian(0.4), location, {}, Normal(location, torch.tensor(0.4).double())
    if name == "gaussian_learned":
        log_scale = normal(*shape, seed=1)
        return likelihoods.gaussian_learned(), location, {"log_scale": log_scale}, Normal(location, log_scale.exp())
    raw = normal(*leading, 6, *shape, seed=2)
    output = torch.cat([location, raw], -1)
    return likelihoods.gaussian_per_input(0.01), output, {}, Normal(location, 0.01 + F.softplus(raw))


@pytest.mark.parametrize("name", ["gaussian", "gaussian_learned", "gaussian_per_input"])
@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3)])
def test_gaussians_are_torch_s(name: str, leading, shape) -> None:
    likelihood, output, parameters, truth = gaussian(name, leading, shape)
    y = likelihood.check(output[(0,) * len(leading)], normal(6, *shape, seed=3))
    log_p = likelihood.log_prob(output, y, parameters)
    assert log_p.shape == (*leading, 6)
    torch.testing.assert_close(log_p, summed(truth.log_prob(y), len(shape)))
    torch.testing.assert_close(likelihood.mean(output, parameters), truth.mean)
    torch.testing.assert_close(likelihood.variance(output, parameters), truth.variance)


@pytest.mark.parametrize("name", ["gaussian", "gaussian_per_input"])
def test_one_number_a_row_may_be_given_flat(name: str) -> None:
    likelihood, output, parameters, truth = gaussian(name, (), (1,))
    flat = normal(6, seed=3)
    y = likelihood.check(output, flat)
    assert y.shape == (6, 1)
    torch.testing.assert_close(likelihood.log_prob(output, y, parameters), truth.log_prob(flat[:, None])[:, 0])


def test_labels_may_be_given_as_a_column_and_in_any_whole_type() -> None:
    output = normal(6, 4)
    expected = labels(6, classes=4)
    for kind in (torch.uint8, torch.int16, torch.int32, torch.int64):
        for y in (expected.to(kind), expected.to(kind)[:, None]):
            checked = likelihoods.categorical().check(output, y)
            assert checked.dtype == torch.int64
            assert torch.equal(checked, expected)
    yes = likelihoods.bernoulli().check(normal(6, 1), expected > 1)
    assert torch.equal(yes, (expected > 1).double()[:, None])


def test_learned_noise_begins_where_it_is_told() -> None:
    parameters = likelihoods.gaussian_learned(0.25).parameters(normal(6, 3))
    torch.testing.assert_close(parameters["log_scale"].exp(), torch.full((3,), 0.25).double())


@pytest.mark.parametrize("size", [30.0, 1e3, 1e6, 1e30])
@pytest.mark.parametrize("name", ["categorical", "bernoulli", "gaussian", "gaussian_per_input"])
def test_gradients_are_finite_at_extreme_outputs(name: str, size: float) -> None:
    likelihood = likelihoods.gaussian(1.0) if name == "gaussian" else likelihoods.TABLE[name]()
    output = torch.tensor([[size, -size], [-size, size], [0.0, size], [0.0, -size]])
    if name.startswith("gaussian"):
        # Far off by 1e30 the density of a Gaussian is no number of single precision, but 1e6 must do.
        output = output.clamp(-1e6, 1e6)
    output.requires_grad_()
    y = {
        "categorical": torch.tensor([0, 0, 1, 1]),
        "bernoulli": torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        "gaussian": torch.zeros(4, 2),
        "gaussian_per_input": torch.zeros(4, 1),
    }[name]
    log_p = likelihood.log_prob(output, y, {})
    log_p.sum().backward()
    assert bool(log_p.isfinite().all())
    assert bool(output.grad.isfinite().all())
    assert float(output.grad.abs().max()) > 0, "a wrong answer still pulls"
    if name in ("categorical", "bernoulli"):
        assert float(log_p.detach().min()) == pytest.approx(-2 * size)


@pytest.mark.parametrize("name", ["categorical", "bernoulli"])
def test_entropies_are_finite_at_extreme_outputs(name: str) -> None:
    outputs = torch.tensor([[[1e30, -1e30]], [[-1e30, 1e30]]])
    mixed, parts = likelihoods.TABLE[name]().entropy(outputs, {})
    targets = 2 if name == "bernoulli" else 1
    torch.testing.assert_close(mixed, torch.tensor([targets * math.log(2)]))
    torch.testing.assert_close(parts, torch.tensor([0.0]))


def test_entropies_of_classes_are_torch_s_and_add_over_positions() -> None:
    logits = 2 * normal(7, 6, 5, 4)
    mixed, parts = likelihoods.categorical().entropy(logits, {})
    torch.testing.assert_close(parts, Categorical(logits=logits).entropy().mean(0).sum(-1))
    torch.testing.assert_close(mixed, Categorical(probs=logits.softmax(-1).mean(0)).entropy().sum(-1))
    moved, _ = likelihoods.categorical(-2).entropy(logits.movedim(-1, -2), {})
    torch.testing.assert_close(moved, mixed)
    yes = 2 * normal(7, 6, 3)
    mixed, parts = likelihoods.bernoulli().entropy(yes, {})
    torch.testing.assert_close(parts, Bernoulli(logits=yes).entropy().mean(0).sum(-1))
    torch.testing.assert_close(mixed, Bernoulli(probs=yes.sigmoid().mean(0)).entropy().sum(-1))


def integrated(locations: np.ndarray, scales: np.ndarray) -> float:
    """−∫ p log p of an equal mixture of Gaussians, piece by piece between the places where it bends."""
    parts = scipy.stats.norm(locations, scales)

    def term(y: float) -> float:
        p = parts.pdf(y).mean()
        return -p * math.log(p) if p > 0 else 0.0

    bends = np.sort(np.concatenate([locations + k * scales for k in (-9, -3, 0, 3, 9)]))
    return sum(scipy.integrate.quad(term, a, b, limit=200)[0] for a, b in itertools.pairwise(bends))


MIXTURES = {
    "one": ([0.3], [0.8]),
    "the same": ([1.0, 1.0], [0.5, 0.5]),
    "far apart": ([-50.0, 50.0], [1.0, 1.0]),
    "overlapping": ([-1.0, 0.0, 2.0], [1.0, 1.0, 1.0]),
    "close": ([-0.1, 0.1], [1.0, 1.0]),
    "many": (np.linspace(-3, 3, 12), np.full(12, 0.2)),
    "of three sizes": ([0.0, 1.0, 2.0], [0.3, 1.0, 0.7]),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_the_entropy_of_a_mixture_is_its_integral(name: str) -> None:
    """Quadrature at nodes of each part: exact where all have one scale, to a hundredth of a nat where they differ."""
    locations, scales = (np.asarray(v, dtype=float) for v in MIXTURES[name])
    raw = np.log(np.expm1(scales - 1e-9))
    output = torch.tensor(np.stack([locations, raw], -1))[:, None]  # [S, 1, 2]
    draws = Draws(output, likelihoods.gaussian_per_input(1e-9), {})
    truth = integrated(locations, scales)
    tolerance = 1e-5 if len(set(scales)) == 1 else 1e-2
    assert float(draws.entropy()) == pytest.approx(truth, abs=tolerance)
    parts = float(np.mean(np.log(scales))) + 0.5 * math.log(2 * math.pi * math.e)
    assert float(draws.mutual_information()) == pytest.approx(max(0.0, truth - parts), abs=tolerance)


@pytest.mark.parametrize("scale", [0.3, 0.7, 2.0])
def test_the_entropy_of_a_mixture_in_two_dimensions_is_its_sample_mean(scale: float) -> None:
    """Fixed normal draws instead of nodes: within 0.08 nats of a large Monte Carlo."""
    locations = 2 * normal(20, 4, 2)
    parts = Independent(Normal(locations.transpose(0, 1), torch.tensor(scale).double()), 1)
    mixture = MixtureSameFamily(Categorical(torch.ones(4, 20).double()), parts)
    torch.manual_seed(0)
    truth = -mixture.log_prob(mixture.sample((20_000,))).mean(0)
    draws = Draws(locations, likelihoods.gaussian(scale), {})
    torch.testing.assert_close(draws.entropy(), truth, rtol=0, atol=0.08)
    assert float(draws.mutual_information().min()) > 0.3
    agreeing = Draws(locations[:1].expand(20, -1, -1), likelihoods.gaussian(scale), {})
    assert float(agreeing.mutual_information().max()) < 1e-6


def test_weights_of_draws_count_for_several_real_targets_too() -> None:
    """Their entropies are integrated on nodes that depend on the number of draws, hence the tolerance."""
    likelihood, times = likelihoods.gaussian_learned(), torch.tensor([3, 1, 2, 4])
    output, log_scale = normal(4, 6, 2), 0.3 * normal(4, 1, 2)
    weighed = Draws(output, likelihood, {"log_scale": log_scale}, times / 10)
    repeated = Draws(
        output.repeat_interleave(times, 0), likelihood, {"log_scale": log_scale.repeat_interleave(times, 0)}
    )
    without = Draws(output, likelihood, {"log_scale": log_scale}, torch.tensor([1.0, 1.0, 1.0, 0.0]) / 3)
    short = Draws(output[:3], likelihood, {"log_scale": log_scale[:3]})
    for first, second in ((weighed, repeated), (without, short)):
        torch.testing.assert_close(first.entropies(), second.entropies(), rtol=0.02, atol=0.01)
        torch.testing.assert_close(first.quantile(0.3), second.quantile(0.3))
        torch.testing.assert_close((first.mean, first.std), (second.mean, second.std))
