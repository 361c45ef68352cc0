"""Skill against the radius of an attack, white-box and by transfer."""

from __future__ import annotations

import pytest
import torch

from doxa.errors import BadInput
from doxa.judge import robustness
from doxa.judge.attacks import fgsm
from doxa.likelihoods import categorical, gaussian

X = 8 * torch.rand(60, 4, generator=torch.Generator().manual_seed(0)) - 4
RANGE = {"low": -4.0, "high": 4.0}


@pytest.fixture
def belief(make_belief, make_mlp):
    return make_belief(make_mlp(4, 3), categorical(), gain=3.0)


def test_a_white_box_attack_costs_accuracy(belief):
    y = belief.predict(X, 10).mean.argmax(1)
    curve = robustness(belief, (X, y), [0.0, 0.3, 1.5], samples=10, **RANGE)
    assert curve["radius"] == [0.0, 0.3, 1.5]
    assert curve["accuracy"][0] == 1
    assert curve["accuracy"][0] > curve["accuracy"][1] > curve["accuracy"][2]
    assert curve["nll"][0] < curve["nll"][1] < curve["nll"][2]
    assert curve["error"] == pytest.approx([1 - a for a in curve["accuracy"]])


def test_a_transfer_attack_uses_the_sources_gradients(belief, make_belief, make_mlp):
    source = make_belief(make_mlp(4, 3, hidden=5), categorical(), gain=3.0)
    y = belief.predict(X, 10).mean.argmax(1)
    curve = robustness(belief, (X, y), [0.2], source=source, samples=10, **RANGE)
    moved = fgsm(source, X, y, 0.2, samples=10, **RANGE)
    expected = (belief.predict(moved, 10).mean.argmax(1) == y).double().mean()
    assert curve["accuracy"] == pytest.approx([float(expected)])
    assert curve["nll"] != robustness(belief, (X, y), [0.2], samples=10, **RANGE)["nll"]


def test_regression_has_rmse(make_belief, make_mlp):
    belief = make_belief(make_mlp(4, 1), gaussian(0.5))
    curve = robustness(belief, (X, belief.predict(X, 5).mean + 0.1), [0.0, 0.2], samples=5, **RANGE)
    assert list(curve) == ["radius", "rmse", "nll"]
    assert curve["rmse"][0] < curve["rmse"][1]


def test_no_radius_is_said(belief):
    with pytest.raises(BadInput, match="radii"):
        robustness(belief, (X, torch.zeros(60, dtype=torch.long)), [])
