"""FGSM against the gradients it stands for."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.func import functional_call

from doxa.errors import BadInput
from doxa.judge.attacks import fgsm
from doxa.judge.attacks.averaged_loss import averaged_loss
from doxa.likelihoods import bernoulli, categorical
from doxa.posteriors.delta import Delta
from doxa.posteriors.particles import Particles
from doxa.predict.belief import Belief
from doxa.weights.layout import lay_out, untrained_tensors

X = 0.3 + 0.4 * torch.rand(40, 6, generator=torch.Generator().manual_seed(0))
Y = torch.randint(0, 2, (40,), generator=torch.Generator().manual_seed(1))


def test_on_a_logistic_model_the_direction_is_the_analytic_sign():
    torch.manual_seed(0)
    net = nn.Linear(6, 1)
    layout, flat = lay_out(net)
    belief = Belief(net, bernoulli(), Delta(flat, layout.random), layout, (untrained_tensors(net),))
    moved = fgsm(belief, X, Y, 0.05)
    # ∇ₓ −log p(y | x) = (σ(w·x + b) − y) w
    analytic = torch.where(Y[:, None] == 1, -1.0, 1.0) * net.weight.detach().sign()
    assert torch.equal((moved - X).sign(), analytic)
    assert torch.allclose(moved, X + 0.05 * analytic)


@pytest.fixture
def ensemble():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
    layout, flat = lay_out(net)
    weights = flat + 1.5 * torch.randn(7, len(flat))
    return Belief(net, categorical(), Particles(weights, layout.random), layout, (untrained_tensors(net),) * 7)


def test_the_gradient_is_that_of_the_averaged_probability(ensemble):
    x = X.clone().requires_grad_()
    weights = [ensemble.layout.weights(w) for w in ensemble.posterior.weights]
    p = torch.stack([functional_call(ensemble.net, w, (x,)).softmax(-1) for w in weights])
    picked = p[:, torch.arange(40), Y]
    inside = torch.autograd.grad(-picked.mean(0).log().sum(), x, retain_graph=True)[0]
    outside = torch.autograd.grad(-picked.log().mean(0).sum(), x)[0]
    loss, clean = averaged_loss(ensemble, X, Y, samples=7, seed=0, low=0.0, high=1.0)
    assert torch.allclose(loss.gradient(clean), inside, atol=1e-6)
    assert not torch.allclose(inside.sign(), outside.sign()), "an average outside the log is another attack"
    assert torch.allclose(loss(clean), -picked.mean(0).log().detach(), atol=1e-6)


def test_rows_whose_loss_would_fall_keep_their_inputs(ensemble):
    loss, clean = averaged_loss(ensemble, X, Y, samples=7, seed=0, low=-9.0, high=9.0)
    stepped = clean + 3.0 * loss.gradient(clean).sign()
    fell = loss(stepped) <= loss(clean)
    assert 0 < int(fell.sum()) < 40, "the test needs rows of both kinds"
    moved = fgsm(ensemble, X, Y, 3.0, samples=7, low=-9.0, high=9.0)
    assert torch.equal(moved[fell], X[fell])
    assert torch.equal(moved[~fell], stepped[~fell])


def test_the_attack_does_not_share_draws_with_the_judgement(make_belief, make_mlp):
    belief = make_belief(make_mlp(6, 2), categorical(), scale=0.5)
    loss, clean = averaged_loss(belief, X, Y, samples=5, seed=0, low=0.0, high=1.0)
    judged_loss = math.log(5) - belief.predict(X, 5, seed=0).log_prob(Y).logsumexp(0)
    assert not torch.allclose(loss(clean), judged_loss)
    assert torch.equal(loss(clean), loss(clean))


def test_the_net_is_left_as_it_was(make_belief):
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    belief = make_belief(net, categorical())
    first, second = fgsm(belief, X, Y, 0.1), fgsm(belief, X, Y, 0.1)
    assert torch.equal(first, second)
    assert net.training
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())


def test_refusals(ensemble):
    with pytest.raises(BadInput, match="low= and high="):
        fgsm(ensemble, X * 3 - 1, Y, 0.1)
    with pytest.raises(BadInput, match="radius"):
        fgsm(ensemble, X, Y, -0.1)
    with pytest.raises(BadInput, match="radius"):
        fgsm(ensemble, X, Y, math.nan)
    with pytest.raises(BadInput, match="rows"):
        fgsm(ensemble, X, Y[:-1], 0.1)
    with pytest.raises(BadInput, match="one tensor"):
        fgsm(ensemble, (X, X), Y, 0.1)
    with pytest.raises(BadInput, match="below high"):
        fgsm(ensemble, X, Y, 0.1, low=1.0, high=0.0)
    with pytest.raises(BadInput, match="samples"):
        fgsm(ensemble, X, Y, 0.1, samples=0)
