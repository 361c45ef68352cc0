"""Laws of starts: units that begin alike are told apart by nothing but noise, and those of uniform starts at once."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import learners, likelihoods, noise, optimisers, posteriors, priors

UNITS, SEEDS = 6, 24
CONSTANT, UNIFORM = (0.1, 0.1), (-0.2, 0.2)
X = torch.randn(32, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = X.sum(1, keepdim=True).sin()
# Adam steps by the sign of a slope at first, which would hide its size: plain descent shows it.
SETTINGS = {"likelihood": likelihoods.gaussian(0.5), "batch_size": len(X), "optimiser": optimisers.sgd(), "lr": 0.1}


def net(span: tuple[float, float]) -> nn.Module:
    """A hidden layer, its weights and biases uniform on a span."""
    torch.manual_seed(1)
    built = nn.Sequential(nn.Linear(3, UNITS), nn.ReLU(), nn.Linear(UNITS, 1)).double()
    for parameter in built.parameters():
        nn.init.uniform_(parameter, *span)
    return built


def by_unit(belief: doxa.Belief, flat: Tensor) -> Tensor:
    """All that a hidden unit has: its weights, its bias and its outgoing weight [units, 5]."""
    tensors = belief.layout.views(flat)
    return torch.cat([tensors["0.weight"], tensors["0.bias"][:, None], tensors["2.weight"].T], 1)


@pytest.mark.parametrize("steps", [1, 5])
def test_a_plain_net_that_starts_constant_gives_all_hidden_units_the_same_updates(steps: int) -> None:
    updates = {}
    for span in (CONSTANT, UNIFORM):
        start = net(span)
        belief = doxa.fit(start, (X, Y), learner=learners.point(), epochs=steps, **SETTINGS)
        before = by_unit(belief, belief.layout.flatten(dict(start.named_parameters())))
        updates[span] = by_unit(belief, belief.posterior.mean) - before
    assert float(updates[CONSTANT].abs().min()) > 1e-6, "every unit learns"
    torch.testing.assert_close(updates[CONSTANT], updates[CONSTANT][:1].expand(UNITS, -1), rtol=1e-9, atol=1e-12)
    apart = (updates[UNIFORM] - updates[UNIFORM][:1]).abs().amax(1)[1:]
    assert float(apart.min()) > 1e-3


def test_the_family_starts_constant_where_its_span_is_a_point() -> None:
    """Means and rhos, biases too: this is how a belief would begin with one value for all."""
    layout, start = doxa.weights.layout.lay_out(net(UNIFORM))
    alike = posteriors.mean_field(mean=CONSTANT, rho=(-5, -5)).start(layout, start, (0,))
    assert alike.mean.unique().numel() == alike.rho.unique().numel() == 1
    apart = posteriors.mean_field(mean=UNIFORM, rho=(-5, -4)).start(layout, start, (0,))
    assert apart.mean.unique().numel() == apart.rho.unique().numel() == layout.random


@pytest.mark.parametrize("kind", [noise.shared, noise.local], ids=lambda kind: kind.name)
def test_a_belief_that_starts_constant_has_units_that_noise_alone_tells_apart(kind: noise.Noise) -> None:
    """Over many seeds of the noise the mean update is one for all units; of a uniform start it is not."""
    largest = {}
    for span in (CONSTANT, UNIFORM):
        learner = learners.variational(priors.gaussian(1.0), kind, posterior=posteriors.mean_field(scale=0.05))
        beliefs = doxa.fleet(
            [net(span) for _ in range(SEEDS)],
            (X, Y),
            learners=[learner] * SEEDS,
            seeds=range(SEEDS),
            epochs=1,
            **SETTINGS,
        )
        updated = torch.stack([by_unit(belief, belief.posterior.mean) for belief in beliefs])
        before = by_unit(beliefs[0], beliefs[0].layout.flatten(dict(net(span).named_parameters())))
        apart = (updated - before) - (updated - before)[:, :1]  # [seeds, units, 5], from the first unit
        error = apart.std(0) / math.sqrt(SEEDS)
        assert float(error[1:].min()) > 0, "one draw of the noise does tell them apart"
        largest[span] = float((apart.mean(0)[1:].abs() / error[1:]).max())
    assert largest[CONSTANT] < 4.5
    assert largest[UNIFORM] > 15
