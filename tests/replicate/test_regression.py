"""What is read off the curve's beliefs, held against what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import doxa
from doxa.data.sets.curve import curve
from doxa_replicate.over_seeds import format_with_error, standard_error, summary
from doxa_replicate.verdicts import combined
from doxa_replicate.weight_uncertainty.curve.measures import (
    band_widths,
    coverage,
    epochs_until,
    mean_curve,
    running_mean,
    thin_curve,
    variance_of_differences,
)
from doxa_replicate.weight_uncertainty.curve.priors import learning_mixture
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import TRAIN_SIZE, CurveSetting
from doxa_replicate.weight_uncertainty.local_reparameterisation import adam_and_sgd
from doxa_replicate.weight_uncertainty.local_reparameterisation.held_still import FrozenBelief


@pytest.mark.parametrize(("scales", "floor"), [((0, 6), 0.665), ((1, 6), 0.633), ((0, 8), 0.687)])
def test_no_gaussian_is_nearer_to_a_mixture_than_the_floor(scales: tuple[int, int], floor: float) -> None:
    assert learning_mixture.kl_floor(CurveSetting(scales)) == pytest.approx(floor, abs=1e-3)


def test_the_floor_depends_on_the_ratio_of_scales_alone() -> None:
    assert learning_mixture.kl_floor(CurveSetting((0, 7))) == pytest.approx(
        learning_mixture.kl_floor(CurveSetting((1, 8))), abs=1e-4
    )


def test_a_band_that_opens_tenfold_is_said_to() -> None:
    def functions(x: np.ndarray) -> Tensor:
        inside = (x[:, 0] >= 0) & (x[:, 0] <= 0.5)
        widths = torch.as_tensor(np.where(inside, 0.1, 1.0))
        return torch.linspace(-1, 1, 401)[:, None] * widths

    measured = band_widths(functions)
    assert measured["iqr_inside"] == pytest.approx(0.1, rel=1e-6)
    assert measured["iqr_outside"] == pytest.approx(1.0, rel=1e-6)
    assert measured["iqr_ratio"] == pytest.approx(10, rel=1e-6)


def test_a_free_energy_that_falls_in_a_line_reaches_its_threshold_when_it_does() -> None:
    energy = [float(100 - k) for k in range(100)]
    assert epochs_until(energy, 50.0) == 51
    assert epochs_until(energy, -1.0) == 100
    assert running_mean([0.0, 1.0, 2.0, 3.0, 4.0], 3).tolist() == [0.5, 1.0, 2.0, 3.0, 3.5]


def test_the_variance_of_differences_leaves_a_steady_fall_out() -> None:
    falling = [-3.0 * k for k in range(30)]
    jumping = [*falling[:20], *(falling[19] + (-1) ** k for k in range(10))]
    assert variance_of_differences(falling)["all"] == pytest.approx(0)
    assert variance_of_differences(jumping)["last_third"] > variance_of_differences(jumping)["all"] > 0


def test_curves_are_thinned_and_averaged_place_by_place() -> None:
    assert thin_curve([float(k) for k in range(1500)], 3) == [[1, 0.0], [751, 750.0], [1500, 1499.0]]
    assert mean_curve([[[1, 2.0], [2, 4.0]], [[1, 4.0], [2, 8.0]]]) == [[1, 3.0], [2, 6.0]]


def test_errors_over_seeds_are_those_of_a_mean() -> None:
    assert standard_error([1.0, 2.0, 3.0]) == pytest.approx(1 / np.sqrt(3))
    assert summary([2.0]) == {"mean": 2.0, "se": None}
    assert format_with_error(summary([1.0, 3.0]), 2) == "2.00 ± 1.00"


def freeze_belief(local: bool, scale: float) -> tuple[FrozenBelief, doxa.Belief]:
    torch.manual_seed(0)
    data = curve(0, TRAIN_SIZE)
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
    return FrozenBelief(belief, learner, (data.x_train, data.y_train), 16), belief


def test_a_belief_held_still_does_not_move_and_its_noise_is_new_each_time() -> None:
    frozen, belief = freeze_belief(local=False, scale=0.1)
    before = [p.values.clone() for p in frozen.gradient.parameters]
    first, second = frozen.losses(32), frozen.losses(32)
    by_mean, by_rho = frozen.gradients(32)
    assert not torch.equal(first, second)
    assert by_mean.shape == (16, belief.layout.size)
    assert by_rho.shape == (16, belief.layout.random)
    assert all(torch.equal(a, b.values) for a, b in zip(before, frozen.gradient.parameters, strict=True))
    assert torch.equal(frozen.gradient.parameters[0].values[3], belief.posterior.mean)


def test_local_noise_averages_over_a_batch_and_shared_noise_does_not() -> None:
    variances = {}
    for local in (False, True):
        frozen, _ = freeze_belief(local, scale=0.1)
        variances[local] = [torch.cat([frozen.losses(b) for _ in range(24)]).var() for b in (8, 512)]
    falls = {local: float(few / many) for local, (few, many) in variances.items()}
    assert falls[True] > 20, "64 times as many rows"
    assert falls[False] < falls[True] / 2


def test_coverage_counts_points_within_the_middle_90_per_cent() -> None:
    _, belief = freeze_belief(local=False, scale=0.1)
    certain = belief.prune(1.0, biases=True)  # every weight is certainly zero, and so is what it says
    coverages = coverage(certain, curve(1, 400), 20)
    assert coverages["functions"] == 0


def test_noises_are_compared_at_rates_chosen_elsewhere_by_when_they_reach_where_the_slower_one_ends() -> None:
    def record(*energy: float) -> dict[str, list[float]]:
        return {"loss": [*energy], "data": [*energy], "last": energy[-1], "differences": 0.0}

    tried = {
        "shared": {"0.1": {"100": record(9, 6, 4)}, "0.2": {"100": record(9, 8, 3), "101": record(9, 5, 5)}},
        "local": {
            "0.1": {"100": record(9, 3, 2), "101": record(5, 4, 4)},
            "0.2": {"100": record(9, 9, 9), "101": record(9, 9, 9)},
        },
    }
    rates = {noise: adam_and_sgd.best_rate(by_rate) for noise, by_rate in tried.items()}
    assert rates == {"shared": "0.2", "local": "0.1"}, "a rate at which a seed diverged is not compared"
    chosen = {
        "shared": {"0": record(9, 8, 3), "1": record(9, 5, 5), "2": record(9, 5, 5)},
        "local": {"0": record(9, 3, 2), "1": record(5, 4, 4)},
    }
    comparison = adam_and_sgd.compare_noises(chosen, (0, 1, 2))
    assert comparison["final"] == {"shared": pytest.approx(13 / 3), "local": 3}
    assert comparison["epochs"] == [{"shared": 3, "local": 2}, {"shared": 2, "local": 1}, None], "a seed diverged"


@pytest.mark.parametrize(
    ("adam", "sgd", "share", "verdict"),
    [(0.0, 0.2, 0.6, "PASS"), (0.0, 0.05, 0.6, "FAIL"), (0.2, 0.2, 0.1, "FAIL"), (0.0, 0.2, 0.1, "OPEN")],
)
def test_adam_alone_can_refute_what_sgd_cannot_show(adam: float, sgd: float, share: float, verdict: str) -> None:
    saved = {name: [value - 0.001, value, value + 0.001] for name, value in (("Adam", adam), ("SGD", sgd))}
    evidence = adam_and_sgd.evidence_of_saving(saved, share)
    assert combined(part.verdict for part in evidence.values()) == verdict
