"""What is read off the curve's beliefs, held against what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import doxa
from doxa.data.sets.curve import curve
from doxa_replicate.over_seeds import error, summary, with_error
from doxa_replicate.weight_uncertainty.curve import learning_mixture
from doxa_replicate.weight_uncertainty.curve.measures import (
    average,
    coverage,
    epochs_to,
    smoothed,
    spread,
    thinned,
    variance_of_differences,
)
from doxa_replicate.weight_uncertainty.curve.trainings import TRAIN, Setting
from doxa_replicate.weight_uncertainty.local_reparameterisation import adam_and_sgd
from doxa_replicate.weight_uncertainty.local_reparameterisation.held_still import HeldStill


@pytest.mark.parametrize(("scales", "floor"), [((0, 6), 0.665), ((1, 6), 0.633), ((0, 8), 0.687)])
def test_no_gaussian_is_nearer_to_a_mixture_than_the_floor(scales: tuple[int, int], floor: float) -> None:
    assert learning_mixture.floor(Setting(scales)) == pytest.approx(floor, abs=1e-3)


def test_the_floor_depends_on_the_ratio_of_scales_alone() -> None:
    assert learning_mixture.floor(Setting((0, 7))) == pytest.approx(learning_mixture.floor(Setting((1, 8))), abs=1e-4)


def test_a_band_that_opens_tenfold_is_said_to() -> None:
    def functions(x: np.ndarray) -> Tensor:
        inside = (x[:, 0] >= 0) & (x[:, 0] <= 0.5)
        widths = torch.as_tensor(np.where(inside, 0.1, 1.0))
        return torch.linspace(-1, 1, 401)[:, None] * widths

    found = spread(functions)
    assert found["iqr_inside"] == pytest.approx(0.1, rel=1e-6)
    assert found["iqr_outside"] == pytest.approx(1.0, rel=1e-6)
    assert found["iqr_ratio"] == pytest.approx(10, rel=1e-6)


def test_a_free_energy_that_falls_in_a_line_reaches_its_threshold_when_it_does() -> None:
    energy = [float(100 - k) for k in range(100)]
    assert epochs_to(energy, 50.0) == 51
    assert epochs_to(energy, -1.0) == 100
    assert smoothed([0.0, 1.0, 2.0, 3.0, 4.0], 3).tolist() == [0.5, 1.0, 2.0, 3.0, 3.5]


def test_the_variance_of_differences_leaves_a_steady_fall_out() -> None:
    falling = [-3.0 * k for k in range(30)]
    jumping = [*falling[:20], *(falling[19] + (-1) ** k for k in range(10))]
    assert variance_of_differences(falling)["all"] == pytest.approx(0)
    assert variance_of_differences(jumping)["last_third"] > variance_of_differences(jumping)["all"] > 0


def test_curves_are_thinned_and_averaged_place_by_place() -> None:
    assert thinned([float(k) for k in range(1500)], 3) == [[1, 0.0], [751, 750.0], [1500, 1499.0]]
    assert average([[[1, 2.0], [2, 4.0]], [[1, 4.0], [2, 8.0]]]) == [[1, 3.0], [2, 6.0]]


def test_errors_over_seeds_are_those_of_a_mean() -> None:
    assert error([1.0, 2.0, 3.0]) == pytest.approx(1 / np.sqrt(3))
    assert summary([2.0]) == {"mean": 2.0, "se": None}
    assert with_error(summary([1.0, 3.0]), 2) == "2.00 ± 1.00"


def still(local: bool, scale: float) -> tuple[HeldStill, doxa.Belief]:
    torch.manual_seed(0)
    data = curve(0, TRAIN)
    learner = doxa.learners.variational(
        doxa.priors.gaussian(1.0),
        doxa.noise.local if local else doxa.noise.shared,
        posterior=doxa.posteriors.mean_field(scale=scale),
    )
    belief = doxa.fit(
        doxa.nets.mlp(1, (16, 16), 1),
        (data.x_train, data.y_train),
        learner=learner,
        likelihood=doxa.likelihoods.gaussian(0.1),
        epochs=1,
        progress=False,
    )
    return HeldStill(belief, learner, (data.x_train, data.y_train), 16), belief


def test_a_belief_held_still_does_not_move_and_its_noise_is_new_each_time() -> None:
    held, belief = still(local=False, scale=0.1)
    before = [p.values.clone() for p in held.gradient.parameters]
    first, second = held.losses(32), held.losses(32)
    by_mean, by_rho = held.gradients(32)
    assert not torch.equal(first, second)
    assert by_mean.shape == (16, belief.layout.size)
    assert by_rho.shape == (16, belief.layout.random)
    assert all(torch.equal(a, b.values) for a, b in zip(before, held.gradient.parameters, strict=True))
    assert torch.equal(held.gradient.parameters[0].values[3], belief.posterior.mean)


def test_local_noise_averages_over_a_batch_and_shared_noise_does_not() -> None:
    variances = {}
    for local in (False, True):
        held, _ = still(local, scale=0.1)
        variances[local] = [torch.cat([held.losses(b) for _ in range(24)]).var() for b in (8, 512)]
    falls = {local: float(few / many) for local, (few, many) in variances.items()}
    assert falls[True] > 20, "64 times as many rows"
    assert falls[False] < falls[True] / 2


def test_coverage_counts_points_within_the_middle_90_per_cent() -> None:
    _, belief = still(local=False, scale=0.1)
    sure = belief.prune(1.0, biases=True)  # every weight is certainly zero, and so is what it says
    found = coverage(sure, curve(1, 400), 20)
    assert found["functions"] == 0


def test_noises_are_compared_at_their_best_rates_by_when_they_reach_where_the_slower_one_ends() -> None:
    def told(*energy: float) -> dict[str, list[float]]:
        return {"free_energy": [*energy], "data": [*energy]}

    found = adam_and_sgd.compared(
        {
            "shared": {"0.1": {"0": told(9, 6, 4)}, "0.2": {"0": told(9, 8, 3), "1": told(9, 5, 5)}},
            "local": {"0.1": {"0": told(9, 3, 2), "1": told(5, 4, 4)}, "0.2": {"0": told(9, 9, 9), "1": told(9, 9, 9)}},
        }
    )
    assert found["rates"] == {"shared": "0.2", "local": "0.1"}, "a rate at which a seed diverged is not compared"
    assert found["final"] == {"shared": 4, "local": 3}
    assert found["epochs"] == [{"shared": 3, "local": 2}, {"shared": 2, "local": 1}]


@pytest.mark.parametrize(
    ("adam", "sgd", "share", "holds"),
    [(0.0, 0.2, 0.6, True), (0.0, 0.05, 0.6, False), (0.2, 0.2, 0.1, False), (0.0, 0.2, 0.1, None)],
)
def test_adam_alone_can_refute_what_sgd_cannot_show(adam: float, sgd: float, share: float, holds: bool | None) -> None:
    assert adam_and_sgd.verdict(adam, sgd, share) is holds
