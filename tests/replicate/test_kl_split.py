"""What is said of halving shares of the KL, against Adam and against beliefs whose optimum is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import doxa
from doxa import kl_weights, learners, likelihoods, priors
from doxa.posteriors import MeanField
from doxa_replicate.weight_uncertainty.kl_split.resistance import GROUPS, resistance
from doxa_replicate.weight_uncertainty.kl_split.theory import drift, scale_after
from doxa_replicate.weight_uncertainty.kl_split.trainings import idle_weights

START, RATE, NOISE, PRIOR = -4.5, 0.03, 0.5, 2.0


@pytest.mark.parametrize("minibatches", [16, 117, 468])
def test_the_formula_is_what_adam_settles_to(minibatches: int) -> None:
    path = drift(minibatches, 120)
    assert path[-1] - path[-2] == pytest.approx(kl_weights.geometric().growth(minibatches), rel=0.015)


@pytest.mark.parametrize("weight", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rows", [12, 1200])
def test_a_weight_without_data_drifts_as_foretold_whatever_the_kl_weighs(weight: float, rows: int) -> None:
    """The input is zero, so that the KL alone moves the weights; neither its weight nor the rows are in the formula."""
    epochs, batches = 5, 4
    belief = doxa.fit(
        nn.Linear(3, 1, bias=False),
        (torch.zeros(rows, 3), torch.zeros(rows, 1)),
        learner=learners.variational(
            priors.gaussian(1e3),
            posterior=doxa.posteriors.mean_field(rho=(START, START)),
            kl_weight=kl_weights.tempered(weight, kl_weights.geometric()),
        ),
        likelihood=likelihoods.gaussian(NOISE),
        epochs=epochs,
        batch_size=rows // batches,
        lr=RATE,
        progress=False,
    )
    expected = scale_after(START, RATE, batches, epochs)
    assert expected > 1.3 * scale_after(START, 0.0, batches, epochs), "it moves far enough for the test to tell"
    assert belief.posterior.scale.tolist() == pytest.approx([expected] * 3, rel=0.01)


def linear_belief(scale: torch.Tensor, x: torch.Tensor) -> tuple[Any, Any, tuple[torch.Tensor, torch.Tensor]]:
    data = (x, x.sum(1, keepdim=True))
    learner = learners.variational(priors.gaussian(PRIOR), doxa.noise.local)
    net = nn.Linear(x.shape[1], 1, bias=False)
    belief = doxa.fit(net, data, learner=learner, likelihood=likelihoods.gaussian(NOISE), epochs=1, progress=False)
    rho = torch.log(torch.expm1(scale))
    return replace(belief, posterior=MeanField(torch.ones(x.shape[1]), rho)), learner, data


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_scales_that_rest_tell_their_temperature(temperature: float) -> None:
    """Linear regression: Σx²/s² σ = T (1/σ − σ/p²) where the free energy of temperature T is lowest."""
    torch.manual_seed(0)
    x = torch.randn(500, 20)
    scale = (x.square().sum(0) / NOISE**2 / temperature + PRIOR**-2).rsqrt()
    found = resistance(*linear_belief(scale, x), evaluations=40)
    assert len(found["temperature"]) == GROUPS
    assert found["temperature_of_all"] == pytest.approx(temperature, rel=0.1)
    for value, error in zip(found["temperature"], found["temperature_error"], strict=True):
        assert abs(value - temperature) < max(5 * error, 0.02 * temperature)


def test_weights_of_black_pixels_are_found_in_the_flat_vector() -> None:
    x = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert idle_weights(x, 2).view(2, 3).tolist() == [[True, False, True]] * 2
