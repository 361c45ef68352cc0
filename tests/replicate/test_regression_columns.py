"""The curve as its authors ran it: their data, split, slopes, biases, epochs and measures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import doxa
from doxa.contracts import Moment
from doxa.data.sets.curve import curve, even_curve
from doxa.posteriors.divergence import kl
from doxa_replicate import ReplicationOptions
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.weight_uncertainty.curve.densities import beside_document, central
from doxa_replicate.weight_uncertainty.curve.priors.gaussian_density import AUTHORS_RUNS, DOCUMENT_LPPD
from doxa_replicate.weight_uncertainty.curve.trainings import beliefs, choice, ensembles, judging
from doxa_replicate.weight_uncertainty.curve.trainings.fleets import last_losses, train_beliefs
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    BATCH,
    EVENLY,
    FULL,
    HALVED_TWICE,
    MINIBATCHES,
    MIXTURE_EPOCHS,
    RECIPE_AS_RUN,
    TRAIN_SIZE,
    CurveSetting,
    fleet_members,
)
from doxa_replicate.weight_uncertainty.last_minibatch import RecordsLastLoss
from doxa_replicate.weight_uncertainty.local_reparameterisation.shared_biases import SharedBiases, local_outputs

OPTIONS = ReplicationOptions()


def test_the_authors_points_are_evenly_spaced_ends_included() -> None:
    data = even_curve()
    assert data.x_train[[0, -1], 0].tolist() == [0.0, 0.5]
    assert data.x_test[[0, -1], 0] == pytest.approx([-0.2, 1.4])
    assert np.diff(data.x_train[:, 0]) == pytest.approx(0.5 / 1023, abs=1e-6)
    assert np.diff(data.x_test[:, 0]) == pytest.approx(1.6 / 999, abs=1e-6)
    quiet, random = even_curve(noise=0.0), curve(test=1001, noise=0.0)
    expected = np.interp(quiet.x_test[:, 0], random.x_test[:, 0], random.y_test[:, 0])
    assert quiet.y_test[:, 0] == pytest.approx(expected, abs=1e-4)


def test_all_seeds_learn_one_data_set_as_run_and_each_its_own_as_written() -> None:
    def learned(recipe: Any, seed: int) -> list[float]:
        values: list[float] = recipe.data.training(seed).y_train[:5, 0].tolist()
        return values

    assert learned(RECIPE_AS_RUN, 0) == learned(RECIPE_AS_RUN, 7)
    assert learned(HALVED_TWICE, 0) != learned(HALVED_TWICE, 7)
    assert len(EVENLY.watched(3).x_test) == 128


def test_the_rate_as_run_is_constant_and_halves_at_5000_epochs() -> None:
    schedule = RECIPE_AS_RUN.schedule(ReplicationOptions(full=True))

    def rate(epoch: int) -> float:
        return float(schedule(Moment(epoch * MINIBATCHES, 25_000 * MINIBATCHES, 0, MINIBATCHES)))

    assert [rate(k) for k in (0, 1499, 4999)] == [1e-3] * 3
    assert [rate(k) for k in (5000, 10_000, 24_999)] == pytest.approx([5e-4, 2.5e-4, 1e-3 / 16])
    assert sum(MIXTURE_EPOCHS.values()) == 75_000
    assert {m.name for m in fleet_members(AS_RUN, "mixture")} == {*MIXTURE_EPOCHS}
    assert FULL.epochs == 1500


def test_a_last_minibatch_pays_one_of_255_of_the_kl() -> None:
    split = RECIPE_AS_RUN.geometric and doxa.kl_weights.geometric()
    assert split
    assert split(Moment(7, 8, 7, 8)) / MINIBATCHES == pytest.approx(1 / 255)


def test_slopes_at_draws_are_of_shared_noise_as_run_alone() -> None:
    def prior(local: bool, recipe: Any) -> str:
        return type(CurveSetting((0,), local=local).build_learner(5, recipe).prior).__name__

    assert [prior(local, RECIPE_AS_RUN) for local in (False, True)] == ["ScaleMixture", "Gaussian"]
    assert prior(False, HALVED_TWICE) == "Gaussian"


def local_learner(shared_biases: bool) -> Any:
    learner = doxa.learners.variational(
        doxa.priors.gaussian(1.0), doxa.noise.local, posterior=doxa.posteriors.mean_field(scale=0.5)
    )
    return SharedBiases(learner) if shared_biases else learner


@pytest.mark.parametrize("shared_biases", [True, False])
def test_a_shared_bias_is_one_draw_for_all_rows(shared_biases: bool) -> None:
    """Where inputs are zero a linear map says its bias: rows agree in it, or each has its own."""
    outputs = []

    class Spy(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            result = super().forward(x)
            outputs.append(result.detach())
            return result

    x = torch.zeros(64, 3)
    belief = doxa.fit(
        Spy(3, 2),
        (x, torch.zeros(64, 2)),
        learner=RecordsLastLoss(local_learner(shared_biases)),
        likelihood=doxa.likelihoods.gaussian(1.0),
        epochs=1,
        batch_size=64,
        progress=False,
    )
    spread = outputs[-1].std(0)
    assert bool((spread < 1e-6).all() if shared_biases else (spread > 0.2).all())
    assert belief.noise["bias"] == ("shared" if shared_biases else "local")
    assert belief.noise["weight"] == "local"


def test_local_predictions_have_the_mean_and_variance_of_a_linear_map() -> None:
    belief = doxa.fit(
        torch.nn.Linear(3, 1),
        (torch.zeros(8, 3), torch.zeros(8, 1)),
        learner=local_learner(True),
        likelihood=doxa.likelihoods.gaussian(1.0),
        epochs=1,
        lr=1e-9,
        progress=False,
    )
    x = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 0.0]])
    outputs = local_outputs(belief, x, 20_000, 0)
    mean = x @ belief.posterior.mean[:3] + belief.posterior.mean[3]
    expected = 0.25 * (x.square().sum(1) + 1)
    assert outputs.mean(0) == pytest.approx(mean.tolist(), abs=0.05)
    assert outputs.var(0) == pytest.approx(expected.tolist(), rel=0.05)
    assert torch.cov(outputs.T)[0, 1] == pytest.approx(0.25, rel=0.1), "the bias alone is in common"


def test_kls_of_a_fleet_are_each_net_s_own() -> None:
    """Estimated side by side, with the priors that each was given."""
    learners = [CurveSetting(prior).build_learner(1, RECIPE_AS_RUN) for prior in ((0,), (1, 6), (2, 8))]
    trained = train_beliefs(OPTIONS, RECIPE_AS_RUN, learners, [0, 0, 1], doxa.likelihoods.gaussian(0.1), epochs=2)
    for belief in trained:
        assert belief.record.history[-1]["kl"] == pytest.approx(kl(belief.posterior, belief.prior).value, rel=1e-6)
    closed = kl(trained[0].posterior, doxa.priors.gaussian(1.0)).value
    assert trained[0].record.history[-1]["kl"] == pytest.approx(closed, rel=0.02), "two Gaussians that are one"


def tried(rate: float, geometric: bool, free_energy: float | None, nll: float | None) -> dict[str, Any]:
    return {"rate": rate, "geometric": geometric, "free_energy": free_energy, "nll": nll}


def test_a_recipe_that_diverged_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept calls its numbers None, where they are infinite."""
    recipes = [tried(3e-2, False, None, None), tried(1e-2, False, 5.0, 2.0), tried(1e-3, True, None, 1.0)]
    monkeypatch.setattr(choice, "tried_recipes", lambda options: recipes)
    assert choice.column_recipe(OPTIONS, AS_WRITTEN).rate == 1e-2
    assert choice.column_recipe(OPTIONS, CHOSEN) == replace(HALVED_TWICE, rate=1e-3, geometric=True)


def test_a_recipe_that_two_columns_share_is_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    options = ReplicationOptions(seeds=1, say=messages.append)
    recipes = [tried(1e-2, False, 5.0, 2.0), tried(1e-3, True, 6.0, 3.0)]
    monkeypatch.setattr(choice, "tried_recipes", lambda options: recipes)
    written, chosen = (beliefs.belief_records(options, column, "likelihood 1") for column in (AS_WRITTEN, CHOSEN))
    assert chosen == written
    assert len(messages) == 1
    recipes[1]["nll"] = 1.0
    assert beliefs.belief_records(options, CHOSEN, "likelihood 1") != written
    assert len(messages) == 2


def test_products_are_rounded_in_training_on_a_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is seen on the way is predicted as what is seen at the end."""
    seen: dict[str, str] = {}

    def fleet(*arguments: Any, watch: Any, **more: Any) -> list[Any]:
        seen["training"] = torch.get_float32_matmul_precision()
        watch([])
        return []

    def watch(beliefs: Any) -> list[Any]:
        seen["judging"] = torch.get_float32_matmul_precision()
        return []

    monkeypatch.setattr(doxa, "fleet", fleet)
    for device, precision in (("cuda", "high"), (None, "highest")):
        train_beliefs(
            ReplicationOptions(device=device), HALVED_TWICE, [], [0], doxa.likelihoods.gaussian(0.1), watch=watch
        )
        assert seen == {"training": precision, "judging": "highest"}
        assert torch.get_float32_matmul_precision() == "highest"


def test_the_printed_density_is_the_mean_of_logs_and_lies_below_the_lppd() -> None:
    learner = CurveSetting((1,)).build_learner(2, RECIPE_AS_RUN)
    (belief,) = train_beliefs(OPTIONS, RECIPE_AS_RUN, [learner], [0], doxa.likelihoods.gaussian(0.1), epochs=3)
    densities = judging.log_densities(OPTIONS, belief, EVENLY)
    test = EVENLY.test()
    log_p = belief.predict(test.x_test, 200).log_prob(torch.as_tensor(test.y_test)).double()
    assert densities["mean_log"] == pytest.approx(float(log_p.mean()), rel=1e-6)
    assert densities["lppd"] == pytest.approx(float((log_p.logsumexp(0) - np.log(200)).mean()), rel=1e-6)
    assert densities["mean_log"] < densities["lppd"]
    row = belief.record.history[-1]
    assert last_losses(belief)[-1] == pytest.approx(row["kl"] / 255 + BATCH * row["last_nll"])
    assert belief.record.settings["seed"] == 0


def test_the_document_is_re_created_where_it_lies_amid_the_seeds_and_the_mean_is_near() -> None:
    values = [-80.0, -100.0, -120.0, -140.0, -160.0]
    assert central(values) == pytest.approx([-158.0, -82.0])
    assert beside_document(values, -120.34)["re_created"]
    assert not beside_document(values, -60.0)["inside"]
    far = beside_document([-10.0, -10.0, -500.0], -100.0)
    assert far["inside"]
    assert not far["re_created"], "its mean is 1.73 times the document's"


def test_the_document_s_table_is_the_mean_of_its_three_runs() -> None:
    for prior, runs in AUTHORS_RUNS.items():
        assert np.mean(runs) == pytest.approx(DOCUMENT_LPPD[prior], abs=0.006)


def test_ensembles_as_run_learn_the_squared_error() -> None:
    """Gradients of −log N(y; f, ½) are those of (y − f)²."""
    likelihood = doxa.likelihoods.gaussian(ensembles.ensemble_recipe(AS_RUN).noise)
    outputs = torch.tensor([[0.3], [1.0]], requires_grad=True)
    y = torch.tensor([[0.0], [2.0]])
    (slope,) = torch.autograd.grad(-likelihood.log_prob(outputs, y, {}).sum(), outputs)
    assert torch.allclose(slope, 2 * (outputs - y).detach())
    assert ensembles.ensemble_recipe(AS_RUN).keeps_lowest
    assert not ensembles.ensemble_recipe(AS_WRITTEN).keeps_lowest


def test_an_ensemble_s_nets_are_kept_at_their_lowest_loss() -> None:
    rows = ensembles.ensemble_records(ReplicationOptions(seeds=1), AS_RUN, "plain")
    assert 1 <= rows[0]["kept_at"] <= 40
    assert TRAIN_SIZE == BATCH * MINIBATCHES


def test_a_mean_of_three_lies_where_means_of_three_are_predicted() -> None:
    """In 95 % of cases, whatever the seeds: of 4,000 of ten seeds and a mean of three further ones."""
    source = np.random.default_rng(0)
    inside = [
        beside_document(list(source.normal(5.0, 1.0, 10)), float(source.normal(5.0, 3**-0.5)), 3)["inside"]
        for _ in range(4000)
    ]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.012)
