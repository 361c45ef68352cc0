"""The laws of attacks: stay in the ball, do nothing at radius 0, never lower the loss."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from doxa.judge.attacks import EXAMPLES
from doxa.judge.attacks.averaged_loss import averaged_loss
from doxa.likelihoods import categorical, gaussian
from doxa.posteriors.delta import Delta
from doxa.posteriors.mean_field import MeanField, inverse_softplus
from doxa.predict.belief import Belief
from doxa.weights.layout import lay_out, untrained_tensors

ROUNDING = 1e-6
ATTACKS = [pytest.param(attack, id=name) for name, attacks in EXAMPLES.items() for attack in attacks]


def mlp(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 12), nn.ReLU(), nn.Linear(12, outputs))


def conv(outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, outputs)
    )


def believe(make, family: str, seed: int, likelihood, outputs: int) -> Belief:
    torch.manual_seed(seed)
    net = make(outputs)
    layout, flat = lay_out(net)
    posterior = {
        "delta": Delta(3 * flat, layout.random),
        "mean_field": MeanField(3 * flat, inverse_softplus(torch.full((layout.random,), 0.3))),
    }[family]
    return Belief(net, likelihood, posterior, layout, (untrained_tensors(net),))


def rows(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    x = torch.rand(24, 1, 6, 6, generator=source)
    x[:4] = x[:4].round()  # some at the ends of the range
    return x, torch.randint(0, 5, (24,), generator=source)


@pytest.fixture(params=[mlp, conv], ids=["mlp", "conv"])
def make(request):
    return request.param


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("family", ["delta", "mean_field"])
class TestAttack:
    @pytest.mark.parametrize("radius", [0.003, 0.1, 2.0])
    def test_stays_in_its_ball_and_in_range(self, attack, family, make, radius):
        x, y = rows(0)
        moved = attack(believe(make, family, 0, categorical(), 5), x, y, radius, samples=4, low=0.0, high=1.0)
        assert moved.shape == x.shape
        assert float((moved - x).abs().max()) <= radius + ROUNDING
        assert 0 <= float(moved.min()) <= float(moved.max()) <= 1
        assert not torch.equal(moved, x)

    def test_radius_zero_is_the_identity(self, attack, family, make):
        x, y = rows(1)
        assert torch.equal(attack(believe(make, family, 1, categorical(), 5), x, y, 0.0, samples=4), x)

    @pytest.mark.parametrize("radius", [0.01, 0.3, 1.0])
    @pytest.mark.parametrize("seed", range(3))
    def test_never_lowers_the_loss_it_maximises(self, attack, family, make, radius, seed):
        x, y = rows(seed)
        belief = believe(make, family, seed, categorical(), 5)
        moved = attack(belief, x, y, radius, samples=4, seed=seed)
        loss, clean = averaged_loss(belief, x, y, samples=4, seed=seed, low=0.0, high=1.0)
        rise = loss(moved) - loss(clean)
        assert float(rise.min()) >= -ROUNDING
        assert float(rise.mean()) > 0

    def test_regression_is_attacked_too(self, attack, family, make):
        x, _ = rows(2)
        belief = believe(make, family, 2, gaussian(0.5), 1)
        y = belief.predict(x, 4).mean + 0.2
        moved = attack(belief, x, y, 0.1, samples=4)
        loss, clean = averaged_loss(belief, x, y, samples=4, seed=0, low=0.0, high=1.0)
        assert float((loss(moved) - loss(clean)).min()) >= -ROUNDING
        assert float((loss(moved) - loss(clean)).mean()) > 0


def test_a_net_that_is_all_but_certain_does_not_hide_its_gradient() -> None:
    """Where p(y) is 1 in single precision, the gradient's sign is that of double precision all the same."""
    torch.manual_seed(0)
    net = nn.Linear(6, 3)
    x = torch.rand(64, 6, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        net.weight.mul_(60)
    y = net(x).argmax(1)
    layout, flat = lay_out(net)
    sure = Belief(net, categorical(), Delta(flat, layout.random), layout, (untrained_tensors(net),))
    loss, clean = averaged_loss(sure, x, y, 1, 0, 0.0, 1.0)
    exact, exact_inputs = averaged_loss(sure.to(dtype=torch.float64), x.double(), y, 1, 0, 0.0, 1.0)
    gradient, exact_gradient = loss.gradient(clean), exact.gradient(exact_inputs)
    certain = sure.predict(x, 1).mean.amax(1) == 1
    assert certain.sum() > 10
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-4, atol=1e-30)
