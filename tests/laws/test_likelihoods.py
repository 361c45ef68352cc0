"""Laws of the likelihoods' room: densities, their moments and entropies, draws that do not count alike, and a fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import integrate
from torch import Tensor, nn

import doxa
from doxa import Draws, learners, likelihoods, priors
from doxa.errors import BadInput
from doxa.likelihoods.example import Example

ALL = [
    pytest.param(example, id=f"{name}-{i}")
    for name, examples in likelihoods.EXAMPLES.items()
    for i, example in enumerate(examples)
]
QUANTITIES = [p for p in ALL if not p.values[0].likelihood.discrete]
LISTED = [p for p in ALL if p.values[0].targets is not None]
ROWS = 5
TRUNCATION = 1e-6  # what a sum may lack where an example lists as many as it can of countably many targets
TIMES = torch.tensor([3, 1, 2, 4])  # how often each of four draws counts


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def draws(example: Example, samples: int) -> Draws:
    """Draws of some rows, different in their outputs and in the likelihood's own parameters."""
    outputs = 1.5 * normal(samples, ROWS, *example.outputs)
    parameters = {
        name: start + 0.3 * normal(samples, 1, *start.shape, seed=k)
        for k, (name, start) in enumerate(example.likelihood.parameters(outputs[0]).items(), 1)
    }
    return Draws(outputs, example.likelihood, parameters)


def row(rows: Draws, k: int) -> Draws:
    return replace(rows, outputs=rows.outputs[:, k : k + 1])


def targets(example: Example, output: Tensor) -> Tensor:
    """A target for each row of an output [B, ·]: those that are listed in turn, or real numbers."""
    if example.targets is not None:
        return example.targets[torch.arange(len(output)) % len(example.targets)]
    mean = example.likelihood.mean(output, example.likelihood.parameters(output))
    return normal(*mean.shape, seed=9).to(output.dtype)


def probabilities(example: Example, one: Draws) -> Tensor:
    """Of every target that a row can have [V], averaged over the draws."""
    assert example.targets is not None
    return torch.stack([one.log_predictive(value[None]).exp()[0] for value in example.targets])


def integral(f: Callable[[float, float], float], one: Draws, end: float = math.inf) -> float:
    """∫ f(y, p(y)) dy of a row with one real target, piece by piece between the places where the draws' parts bend."""
    assert one.mean.numel() == 1, "an example of real targets must have one a row, to be integrated over"

    def integrand(y: float) -> float:
        return f(y, math.exp(float(one.log_predictive(torch.full_like(one.mean, y)))))

    middles, scales = one.means.flatten(), one.likelihood.variance(one.outputs, one.parameters).sqrt().flatten()
    bends = {float(b) for k in (-9, -3, 0, 3, 9) for b in middles + k * scales}
    edges = [-math.inf, *sorted(b for b in bends if b < end), end]
    return sum(integrate.quad(integrand, a, b, limit=200)[0] for a, b in pairwise(edges))


def expectation(example: Example, f: Callable[[Tensor], Tensor], one: Draws) -> float:
    """E f(y) of a row with one target: a sum where targets are listed, an integral elsewhere."""
    if example.targets is None:
        return integral(lambda y, p: p * float(f(torch.tensor(y, dtype=torch.float64))), one)
    return float((probabilities(example, one) * f(example.targets.double().flatten())).sum())


def entropy(example: Example, one: Draws) -> float:
    """−E log p(y) of a row."""
    if example.targets is None:
        return integral(lambda _, p: -p * math.log(p) if p > 0 else 0.0, one)
    return float(torch.special.entr(probabilities(example, one)).sum())


def test_every_likelihood_of_the_table_has_examples() -> None:
    assert set(likelihoods.EXAMPLES) == set(likelihoods.TABLE)
    for name, examples in likelihoods.EXAMPLES.items():
        assert examples
        assert all(isinstance(example.likelihood, likelihoods.TABLE[name]) for example in examples)


# The density and what is said of it.


@pytest.mark.parametrize("example", ALL)
def test_densities_sum_or_integrate_to_one(example: Example) -> None:
    rows = draws(example, 1)
    for k in range(ROWS):
        assert expectation(example, torch.ones_like, row(rows, k)) == pytest.approx(1, abs=TRUNCATION)


@pytest.mark.parametrize("example", ALL)
def test_mean_and_variance_are_those_of_the_density(example: Example) -> None:
    """Of y; of a label among classes, of being each of them: the probability p, and p (1 − p)."""
    rows = draws(example, 1)
    means, variances = rows.means[0], example.likelihood.variance(rows.outputs, rows.parameters)[0]
    assert means.shape == variances.shape
    for k, (mean, variance) in enumerate(zip(means, variances, strict=True)):
        one = row(rows, k)
        if mean.numel() > 1:
            assert example.likelihood.discrete
            p = probabilities(example, one)
            torch.testing.assert_close((mean.flatten(), variance.flatten()), (p, p * (1 - p)))
        else:
            middle = expectation(example, lambda y: y, one)
            square = expectation(example, lambda y, middle=middle: (y - middle).square(), one)
            assert float(mean) == pytest.approx(middle, rel=1e-5, abs=1e-6)
            assert float(variance) == pytest.approx(square, rel=1e-5)


@pytest.mark.parametrize("leading", [(), (4,), (2, 3)], ids=["one", "four", "two-by-three"])
@pytest.mark.parametrize("example", ALL)
def test_a_row_has_one_log_probability_in_every_draw(example: Example, leading: tuple[int, ...]) -> None:
    likelihood, output = example.likelihood, normal(*leading, ROWS, *example.outputs)
    each_output = output.reshape(-1, ROWS, *example.outputs)
    parameters = likelihood.parameters(each_output[0])
    y = likelihood.check(each_output[0], targets(example, each_output[0]))
    log_p = likelihood.log_prob(output, y, parameters)
    assert log_p.shape == (*leading, ROWS)
    expected = torch.stack([likelihood.log_prob(one_output, y, parameters) for one_output in each_output])
    torch.testing.assert_close(log_p.reshape(expected.shape), expected)
    assert likelihood.mean(output, parameters).shape[: len(leading) + 1] == (*leading, ROWS)


@pytest.mark.parametrize("size", [30.0, 1e3])
@pytest.mark.parametrize("example", ALL)
def test_gradients_are_finite_at_extreme_outputs(example: Example, size: float) -> None:
    """In single precision, for outputs of either sign in every place."""
    corners = torch.tensor(list(product((size, -size), repeat=math.prod(example.outputs))))
    values = torch.tensor([[0.0], [1.0], [-20.0]]) if example.targets is None else example.targets[:20]
    output = corners.reshape(-1, *example.outputs).repeat_interleave(len(values), 0)
    y = example.likelihood.check(output, torch.cat([values] * len(corners)))
    output.requires_grad_()
    log_p = example.likelihood.log_prob(output, y, example.likelihood.parameters(output.detach()))
    log_p.sum().backward()
    assert bool(log_p.isfinite().all())
    assert bool(output.grad.isfinite().all())


# Targets.


@pytest.mark.parametrize("example", ALL)
def test_targets_of_a_wrong_shape_are_refused(example: Example) -> None:
    output = normal(ROWS, *example.outputs)
    with pytest.raises(BadInput, match="shape"):
        example.likelihood.check(output, torch.stack([targets(example, output)] * 3, -1))


@pytest.mark.parametrize("example", ALL)
def test_what_was_checked_may_be_checked_again(example: Example) -> None:
    """A judge checks targets, and asks draws of them, which check them too."""
    output = normal(ROWS, *example.outputs)
    y = example.likelihood.check(output, targets(example, output))
    again = example.likelihood.check(output, y)
    assert again.dtype == y.dtype
    assert torch.equal(again, y)


# Quantiles and entropies over draws.


@pytest.mark.parametrize("example", ALL)
def test_quantiles_do_not_fall(example: Example) -> None:
    rows = draws(example, 4)
    quantiles = torch.stack([rows.quantile(float(q)) for q in np.linspace(0.02, 0.98, 25)])
    assert quantiles.shape[1:] == rows.mean.shape
    assert float(quantiles.diff(dim=0).min()) >= -1e-9
    assert float((quantiles[-1] - quantiles[0]).min()) > 0


@pytest.mark.parametrize("example", QUANTITIES)
def test_quantiles_of_a_quantity_are_those_of_the_mixture(example: Example) -> None:
    """Up to the q-quantile lies a share of at least q, and below it one of at most q."""
    one = row(draws(example, 3), 0)
    for q in (0.1, 0.5, 0.95):
        quantile = float(one.quantile(q))
        if example.targets is None:
            assert integral(lambda _, p: p, one, end=quantile) == pytest.approx(q, abs=1e-6)
        else:
            p, values = probabilities(example, one), example.targets.flatten()
            assert float(p[values <= quantile].sum()) >= q - TRUNCATION
            assert float(p[values < quantile].sum()) <= q + TRUNCATION


@pytest.mark.parametrize("example", ALL)
def test_the_entropy_of_one_draw_is_that_of_its_density(example: Example) -> None:
    rows = draws(example, 1)
    mixed, parts = rows.entropies()
    assert mixed.shape == (ROWS,)
    torch.testing.assert_close(mixed, parts)
    exact = torch.tensor([entropy(example, row(rows, k)) for k in range(ROWS)], dtype=mixed.dtype)
    torch.testing.assert_close(mixed, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("example", LISTED)
def test_the_entropy_of_a_mixture_is_that_of_its_density(example: Example) -> None:
    rows = draws(example, 4)
    exact = torch.tensor([entropy(example, row(rows, k)) for k in range(ROWS)], dtype=torch.float64)
    torch.testing.assert_close(rows.entropy(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("example", ALL)
def test_a_mixture_has_at_least_the_mean_entropy_of_its_parts(example: Example) -> None:
    rows = draws(example, 4)
    mixed, parts = rows.entropies()
    assert float((mixed - parts).min()) > 0, "these draws differ"
    first = {name: values[:1].expand_as(values) for name, values in rows.parameters.items()}
    agreeing = replace(rows, outputs=rows.outputs[:1].expand_as(rows.outputs), parameters=first)
    torch.testing.assert_close(*agreeing.entropies())


# Draws that do not count alike.


def repeated(rows: Draws, times: Tensor) -> Draws:
    """Each draw as often as it is told."""
    parameters = {name: values.repeat_interleave(times, 0) for name, values in rows.parameters.items()}
    return replace(rows, outputs=rows.outputs.repeat_interleave(times, 0), parameters=parameters)


@pytest.mark.parametrize("example", ALL)
def test_a_draw_of_weight_three_is_three_draws(example: Example) -> None:
    unweighted = draws(example, len(TIMES))
    weighed, counted = replace(unweighted, weights=TIMES / TIMES.sum()), repeated(unweighted, TIMES)
    for statistic in ("mean", "aleatoric", "epistemic", "std"):
        torch.testing.assert_close(getattr(weighed, statistic), getattr(counted, statistic))
        if statistic != "aleatoric":  # the same in every draw, where noise is known
            assert not torch.allclose(getattr(weighed, statistic), getattr(unweighted, statistic))
    torch.testing.assert_close(weighed.entropies(), counted.entropies())
    y = targets(example, unweighted.outputs[0])
    torch.testing.assert_close(weighed.log_predictive(y), counted.log_predictive(y))
    if not example.likelihood.discrete:  # between probabilities quantiles are interpolated
        torch.testing.assert_close(weighed.quantile(0.3), counted.quantile(0.3))


@pytest.mark.parametrize("example", ALL)
def test_equal_weights_are_none_and_a_draw_without_weight_is_no_draw(example: Example) -> None:
    unweighted = draws(example, 4)
    equal = replace(unweighted, weights=torch.full((4,), 0.25))
    short = repeated(unweighted, torch.tensor([1, 1, 1, 0]))
    without = replace(unweighted, weights=torch.tensor([1.0, 1.0, 1.0, 0.0]) / 3)
    for first, second in ((unweighted, equal), (short, without)):
        for q in (0.01, 0.3, 0.5, 0.97):
            torch.testing.assert_close(first.quantile(q), second.quantile(q))
        torch.testing.assert_close(first.std, second.std)
        torch.testing.assert_close(first.entropies(), second.entropies())


# A net that is fitted with it.


class Head(nn.Module):
    """A linear map from three inputs to outputs of any shape."""

    def __init__(self, outputs: tuple[int, ...]) -> None:
        super().__init__()
        self.linear, self.outputs = nn.Linear(3, math.prod(outputs)), outputs

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).reshape(len(x), *self.outputs)


def fit(example: Example, y: Tensor) -> doxa.Belief:
    torch.manual_seed(0)
    return doxa.fit(
        Head(example.outputs),
        (normal(len(y), 3).float(), y),
        learner=learners.variational(priors.gaussian(1.0)),
        likelihood=example.likelihood,
        epochs=2,
        batch_size=4,
        progress=False,
    )


@pytest.mark.parametrize("example", ALL)
def test_a_net_is_fitted_judged_and_saved_with_it(example: Example, tmp_path: Path) -> None:
    x, y = normal(10, 3).float(), targets(example, torch.zeros(10, *example.outputs))
    belief = fit(example, y)
    assert len(belief.record.history) == 2
    judgement = doxa.judge(belief, (x, y), samples=4)
    assert {"nll", "error" if example.likelihood.discrete else "rmse"} <= set(judgement.scores)
    assert all(math.isfinite(estimate.value) for estimate in judgement.scores.values())
    belief.save(tmp_path / "belief.doxa")
    loaded = doxa.load(tmp_path / "belief.doxa", Head(example.outputs))
    assert loaded.likelihood == example.likelihood
    assert torch.equal(loaded.predict(x, 4).log_prob(y), belief.predict(x, 4).log_prob(y))


@pytest.mark.parametrize("example", ALL)
def test_a_target_that_is_no_number_is_refused(example: Example) -> None:
    y = targets(example, torch.zeros(10, *example.outputs)).float()
    y[3] = math.nan
    with pytest.raises(BadInput, match="y holds 1 values that are NaN"):
        fit(example, y)
