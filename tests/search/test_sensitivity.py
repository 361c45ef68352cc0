"""Safe perturbations: sensitivities are what their equations say, and outputs are moved less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import search
from doxa.search.sensitivity import s_abs, s_sum, safe_factors, safe_factors_by_tensor
from doxa.weights.layout import call, lay_out


def small_net() -> tuple[nn.Module, Any, Tensor, Tensor, Any]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    layout, flat = lay_out(net)
    x = torch.randn(7, 3, dtype=torch.float64)

    def run(weights: Mapping[str, Tensor], rows: Any) -> Tensor:
        return call(net, weights, {}, rows)

    return net, layout, flat, x, run


def jacobian() -> Tensor:
    """Slopes of every row and output by every weight [7, 2, P]."""
    _, layout, flat, x, forward = small_net()
    gradients: Tensor = torch.autograd.functional.jacobian(lambda w: forward(layout.weights(w), x), flat)
    return gradients


def test_sensitivities_are_those_of_the_jacobian() -> None:
    _, layout, flat, x, forward = small_net()
    slopes = jacobian()
    torch.testing.assert_close(s_sum(forward, layout, flat, x), slopes.mean(0).square().sum(0).sqrt())
    torch.testing.assert_close(s_abs(forward, layout, flat, x), slopes.abs().mean(0).square().sum(0).sqrt())


def test_rescaled_perturbations_are_as_long_and_have_a_floor() -> None:
    factors = safe_factors(torch.tensor([0.0, 1.0, 2.0, 4.0]))
    assert factors.isfinite().all()
    torch.testing.assert_close(factors.square().mean(), torch.tensor(1.0))
    assert bool((factors.diff() < 0).all())


def test_each_tensor_s_perturbations_are_as_long_as_before_and_plain_where_all_weights_are_alike() -> None:
    _, layout, flat, x, forward = small_net()
    torch.testing.assert_close(safe_factors_by_tensor(torch.ones_like(flat), layout), torch.ones_like(flat))
    sensitivity = s_sum(forward, layout, flat, x)
    factors = safe_factors_by_tensor(sensitivity, layout)
    for slot in layout.slots:
        torch.testing.assert_close(factors[slot.span].square().mean(), torch.ones((), dtype=flat.dtype))
        torch.testing.assert_close(factors[slot.span].argsort(), sensitivity[slot.span].argsort(descending=True))
        assert float(factors[slot.span].max() / factors[slot.span].min()) <= 100 + 1e-9
    assert safe_factors_by_tensor(torch.zeros_like(flat), layout).isfinite().all()


@pytest.mark.parametrize("kind", [s_sum, s_abs])
def test_they_move_the_outputs_less_than_others_of_the_same_length(kind: Any) -> None:
    _, layout, flat, x, forward = small_net()
    factors = safe_factors(kind(forward, layout, flat, x))
    plain = forward(layout.weights(flat), x)
    epsilon = 0.05 * torch.randn(300, len(flat), dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def divergence(steps: Tensor) -> float:
        moved = torch.stack([forward(layout.weights(flat + step), x) for step in steps])
        return float((moved - plain).square().sum(-1).mean())

    rescaled = epsilon * factors
    rescaled = rescaled * (epsilon.norm(dim=1) / rescaled.norm(dim=1))[:, None]
    assert divergence(rescaled) < divergence(epsilon)


@pytest.mark.parametrize("kind", ["sum", "abs", "sum_by_tensor"])
@pytest.mark.parametrize("estimator", [search.local(), search.weight_space()], ids=["local", "weight space"])
def test_a_net_learns_by_them(kind: str, estimator: Any) -> None:
    x = torch.randn(96, 2, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    belief = doxa.fit(
        doxa.nets.mlp(2, (16,), 2),
        (x, (x.norm(dim=1) > 1.1).long()),
        learner=search.learner(estimator, size=40, scale=0.1, sensitivity=kind),
        likelihood=doxa.likelihoods.categorical(),
        epochs=20,
        batch_size=48,
        lr=0.03,
        progress=False,
    )
    history = belief.record.history
    assert history[-1]["nll"] < 0.9 * history[0]["nll"]
    assert len(belief.posterior.scale.unique()) > 10


def test_bad_input_is_named() -> None:
    with pytest.raises(doxa.BadInput, match='"sum", "abs" or "sum_by_tensor"'):
        search.learner(sensitivity="max")
    with pytest.raises(doxa.BadInput, match="leave scales as they are"):
        search.learner(search.low_rank(), sensitivity="sum")
