"""Pruning curves and signal-to-noise summaries."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from doxa.errors import BadInput
from doxa.judge import pruned_shares, pruning_curve, signal_to_noise_histogram, signal_to_noise_quantiles
from doxa.likelihoods import categorical, gaussian
from doxa.posteriors.delta import Delta
from doxa.posteriors.particles import Particles

X = torch.randn(80, 4, generator=torch.Generator().manual_seed(0))
FRACTIONS = [0.0, 0.3, 0.5, 1.0]


@pytest.fixture
def belief(make_belief, make_mlp):
    return make_belief(make_mlp(4, 3), categorical(), gain=3.0)


@pytest.mark.parametrize("per_layer", [False, True])
def test_each_point_is_the_pruned_belief(belief, per_layer):
    y = belief.predict(X, 5).mean.argmax(1)
    curve = pruning_curve(belief, (X, y), FRACTIONS, per_layer=per_layer, samples=5)
    assert curve["fraction"] == FRACTIONS
    assert curve["error"][0] == 0
    for fraction, error in zip(FRACTIONS, curve["error"], strict=True):
        pruned_mean = belief.prune(fraction, per_layer=per_layer).predict(X, 5).mean
        assert error == pytest.approx(float((pruned_mean.argmax(1) != y).double().mean()))
    assert len(set(curve["nll"])) == len(FRACTIONS)
    json.dumps(curve, allow_nan=False)


def test_rankings_differ(belief):
    y = belief.predict(X, 5).mean.argmax(1)
    curves = [pruning_curve(belief, (X, y), [0.6], per_layer=per_layer, samples=5) for per_layer in (False, True)]
    assert curves[0]["nll"] != curves[1]["nll"]


def test_regression_has_rmse(make_belief, make_mlp):
    curve = pruning_curve(make_belief(make_mlp(4, 1), gaussian(0.5)), (X, torch.randn(80, 1)), [0.0, 0.5], samples=3)
    assert list(curve) == ["fraction", "rmse", "nll"]


def test_refresh_renews_batch_norm(make_belief):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    belief, y = make_belief(net, categorical()), torch.zeros(80, dtype=torch.long)
    curve = pruning_curve(belief, (X, y), [0.5], refresh=X, samples=3)  # and no warning, which would be an error
    with pytest.warns(UserWarning, match="BatchNorm"):
        stale = pruning_curve(belief, (X, y), [0.5], samples=3)
    assert curve["nll"] != stale["nll"]


def test_shares_add_up(belief):
    shares = pruned_shares(belief, FRACTIONS)
    assert list(shares) == ["fraction", "0.weight", "2.weight"]
    sizes = {"0.weight": 64, "2.weight": 48}
    for i, fraction in enumerate(FRACTIONS):
        gone = sum(shares[name][i] * size for name, size in sizes.items())
        assert gone == pytest.approx(round(fraction * 112))
    assert shares["0.weight"][1] != shares["2.weight"][1]


def test_quantiles(belief):
    quantiles = signal_to_noise_quantiles(belief, (0.25, 0.5))
    ratio = belief.signal_to_noise()["2.weight"].flatten()
    assert quantiles["2.weight"][0.5] == pytest.approx(float(np.median(ratio.numpy())), rel=1e-5)
    assert set(quantiles) == {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_histogram_counts_every_weight(belief):
    edges, counts = signal_to_noise_histogram(belief.prune(0.5), bins=35)
    assert {name: sum(c) for name, c in counts.items()} == {"0.weight": 64, "0.bias": 16, "2.weight": 48, "2.bias": 3}
    pruned = sum(counts[name][0] for name in ("0.weight", "2.weight"))
    assert pruned >= 56
    ratio = belief.signal_to_noise()["0.weight"]
    expected_count = int(((10 * ratio.log10() >= edges[15]) & (10 * ratio.log10() < edges[16])).sum())
    assert signal_to_noise_histogram(belief, bins=35)[1]["0.weight"][15] == expected_count


def test_nothing_to_prune_is_said(belief):
    with pytest.raises(BadInput, match="fractions"):
        pruning_curve(belief, (X, torch.zeros(80, dtype=torch.long)), [])


def test_a_point_s_ratios_are_infinite_and_break_nothing(belief):
    """All weights in the last bin, but for those that are zero: in the first."""
    weights = belief.posterior.mean.clone()
    weights[0] = 0
    point = replace(belief, posterior=Delta(weights, belief.layout.random))
    quantiles = signal_to_noise_quantiles(point, (0.0, 0.5, 1.0))
    assert list(quantiles["0.weight"].values()) == [0.0, math.inf, math.inf]
    _, counts = signal_to_noise_histogram(point)
    assert counts["0.weight"][0] == 1
    assert counts["0.weight"][-1] == point.layout.slots[0].stop - 1
    half = Particles(torch.stack([weights, torch.cat([-weights[:32], weights[32:]])]), belief.layout.random)
    both = replace(belief, posterior=half, buffers=belief.buffers * 2)
    assert signal_to_noise_quantiles(both, (0.0, 1.0))["0.weight"][0.0] == 0.0
    assert all(math.isfinite(c) for row in signal_to_noise_histogram(both)[1].values() for c in row)
