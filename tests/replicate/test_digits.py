"""MNIST's cells: what is judged of a trained net, on small nets of other data."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import doxa
from doxa.posteriors.divergence import closed_form
from doxa.predict.belief import Belief
from doxa_replicate import ReplicationOptions
from doxa_replicate.weight_uncertainty.digits import mnist_error, narrow_prior, pruning, under_attack
from doxa_replicate.weight_uncertainty.digits.trainings import cells, choice, fleets, mixtures, models, settings
from doxa_replicate.weight_uncertainty.digits.trainings.attacks import gradient_signs
from doxa_replicate.weight_uncertainty.digits.trainings.judging import predicting_belief, reliability_as_drawn
from doxa_replicate.weight_uncertainty.digits.trainings.weights import kernel_density, weight_statistics


def train_belief(net: nn.Module, learner: Any, epochs: int = 1) -> Belief:
    x, y = torch.rand(64, 6, generator=torch.Generator().manual_seed(1)), torch.arange(64) % 3
    likelihood = doxa.likelihoods.categorical()
    return doxa.fit(net, (x, y), learner=learner, likelihood=likelihood, epochs=epochs, lr=1e-6, progress=False)


def test_the_weights_of_a_net_with_dropout_are_those_that_it_predicts_with() -> None:
    """Not a draw with half of its channels at zero and the rest doubled."""
    belief = train_belief(doxa.nets.mlp(6, (8, 8), 3), doxa.learners.dropout(0.5))
    statistics = weight_statistics(predicting_belief(False, belief))
    assert statistics["std"] == statistics["std_of_means"]
    assert weight_statistics(belief)["std"] != statistics["std"]


def test_densities_are_of_all_weights_also_of_those_that_lie_beyond_the_chart() -> None:
    net = nn.Linear(6, 3)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([-0.995, -0.002, 0.002, 0.996, 5.0, -5.0]).expand(3, 6))
        net.bias.fill_(0.5)
    statistics = weight_statistics(train_belief(net, doxa.learners.point(), epochs=1))
    low, high, bins = statistics["edges"]
    share = np.asarray(statistics["density"]) * (high - low) / bins
    assert share.sum() == pytest.approx(4 / 6)
    assert [share[0], share[bins // 2 - 1], share[bins // 2], share[-1]] == pytest.approx([1 / 6] * 4)
    assert statistics["layers"]["weight"]["density"] == statistics["density"]


def test_a_belief_is_judged_by_its_draws() -> None:
    belief = train_belief(doxa.nets.mlp(6, (8, 8), 3), doxa.learners.variational(doxa.priors.gaussian(1.0)))
    assert predicting_belief(True, belief) is belief


def test_attacks_know_which_way_is_up_from_a_net_that_is_all_but_certain() -> None:
    """Where 1 − p is below single precision: ∇J = Σ_j p_j (w_j − w_y), and w_y is much the longer."""
    net = nn.Linear(6, 3)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[10.0], [0.1], [-10.0]]).expand(3, 6))
        net.bias.zero_()
    belief = train_belief(net, doxa.learners.point())
    x, y = torch.full((1, 6), 0.5), torch.tensor([0])
    assert float(belief.predict_at_mean(x).mean[0, 0]) == 1.0
    assert torch.equal(gradient_signs(belief, x, y, 1), -torch.ones(1, 6))


def test_scores_are_sorted_by_the_whole_part_of_ten_times_each_and_one_stands_apart() -> None:
    p = torch.tensor([[1.0, 0.0, 0.0], [0.95, 0.05, 0.0], [0.12, 0.33, 0.55]])
    drawn = reliability_as_drawn(p, torch.tensor([0, 1, 2]))
    assert drawn["count"] == [4, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1]
    assert drawn["accuracy"][10] == 1.0
    assert drawn["accuracy"][9] == 0.0
    assert drawn["accuracy"][0] == 0.25
    assert drawn["confidence"][5] == pytest.approx(0.55)
    assert sum(drawn["count"]) == p.numel()


def test_kernel_densities_are_those_of_scipy() -> None:
    """Cut off at ±0.3, with the bandwidth of all weights."""
    draws = [torch.randn(4000, generator=torch.Generator().manual_seed(k)) * (0.05 + 0.1 * k) for k in range(2)]
    ours = kernel_density(draws)
    weights = torch.cat(draws).double().numpy()
    expected = stats.gaussian_kde(weights)
    low, high, pieces = ours["edges"]
    borders = np.linspace(low, high, pieces + 1)
    middles = (borders[1:] + borders[:-1]) / 2
    inner = np.abs(middles) < 0.2
    assert np.asarray(ours["density"])[inner] == pytest.approx(expected(middles[inner]), rel=0.01)
    assert ours["peak"] == pytest.approx(float(expected(np.linspace(-0.3, 0.3, 2001)).max()), rel=0.01)


@pytest.mark.parametrize("name", [name for name, model in models.MODELS.items() if model.is_belief])
def test_as_run_no_prior_tells_its_kl_in_closed_form(name: str) -> None:
    """The authors drew theirs; a prior that tells it has its slopes by the means and scales instead."""
    as_run, as_written = (models._learner(models.MODELS[name], r).prior for r in (models.AS_RUN, models.AS_WRITTEN))
    assert as_run is not None
    assert as_written is not None
    w = torch.linspace(-0.5, 0.5, 12)
    assert closed_form(as_run) is None
    assert torch.allclose(as_run.log_prob(w), as_written.log_prob(w), rtol=1e-4, atol=1e-4)


def test_the_narrowest_beliefs_as_run_are_one_fleet_and_each_is_told_apart() -> None:
    together = models.fleet_models("gaussian", 400, at_draws=True)
    assert {"gaussian", "mixture", "narrow-6", "narrow-7", "narrow-8"} == {*together}
    learners = [models._learner(models.MODELS[name], models.AS_RUN) for name in together]
    assert len({learner.kind for learner in learners}) == 1, "one program"
    assert len({repr(learner.prior) for learner in learners}) == len(together)
    assert models.fleet_models("gaussian", 400) == models.fleet_models("gaussian", 1200, True) == ("gaussian",)


def test_slopes_taken_at_draws_are_on_average_the_closed_ones() -> None:
    """A Gaussian as a mixture of two that are one: the authors estimate the KL at the weights that are drawn."""
    model = models.MODELS["gaussian"]
    w = torch.linspace(-3, 3, 13, dtype=torch.float64)
    closed, at_draws = model.build_prior(), model.build_prior(at_draws=True)
    assert type(at_draws) is not type(closed)
    assert torch.allclose(at_draws.grad_log_prob(w), closed.grad_log_prob(w), atol=1e-5)
    assert torch.allclose(at_draws.log_prob(w), closed.log_prob(w), atol=1e-5)


def test_the_authors_split_and_slopes_are_in_the_learner_as_run_alone() -> None:
    as_run, as_written = (models._learner(models.MODELS["gaussian"], r) for r in (models.AS_RUN, models.AS_WRITTEN))
    assert as_run.kl_weight == doxa.kl_weights.geometric()
    assert as_written.kl_weight == doxa.kl_weights.uniform()
    assert type(as_run.prior) is not type(as_written.prior)
    assert as_run.samples == as_written.samples == 2


@pytest.mark.parametrize(
    ("errors", "share"),
    [
        ([2.0, 2.5, 4.5, 9.0], 0.525),
        ([2.0, 9.0, 2.0, 2.0], 0.5 / 7),
        ([2.0, 3.0, 2.0, 3.0], 0.9),
        ([9.0, 2.0, 2.0, 2.0], 0.9),
    ],
)
def test_what_can_go_is_read_off_a_straight_line_to_the_first_point_beyond(errors: list[float], share: float) -> None:
    assert pruning.tolerated_share({"fraction": [0.0, 0.5, 0.6, 0.9], "error": errors}) == pytest.approx(share)


def test_what_was_judged_otherwise_is_not_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def make(*arguments: Any) -> dict[str, Any]:
        calls.append(1)
        return {"plain": []}

    monkeypatch.setattr(cells, "_train_cells", make)
    for _ in range(2):
        cells.cells(ReplicationOptions(folder=tmp_path), "plain", 400)
    assert len(calls) == 1
    monkeypatch.setattr(cells, "JUDGED_BY", {**cells.JUDGED_BY, "fractions": (0.0, 0.5)})
    cells.cells(ReplicationOptions(folder=tmp_path), "plain", 400)
    assert len(calls) == 2


@pytest.mark.parametrize("width", models.WIDTHS)
def test_seeds_that_are_added_leave_those_before_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Each is trained once, and none with so many others that it cannot end in one go."""
    trained: list[int] = []

    def make(options: Any, trained_models: Any, members: Any, *more: Any) -> dict[str, Any]:
        trained.extend(seed for _, seed in members)
        return {"plain": [{"seed": seed} for _, seed in members]}

    monkeypatch.setattr(cells, "_train_cells", make)
    for count in (5, 10):
        made = cells.cells(ReplicationOptions(seeds=count, folder=tmp_path), "plain", width)
        assert [cell["seed"] for cell in made] == trained == [*range(count)]
    assert max(map(len, cells.seed_groups(range(10), 1200))) == 3


def test_a_part_is_found_again_when_recipes_have_a_knob_more() -> None:
    """By what tells a recipe from others: a default is no part of it."""
    assert models.AS_WRITTEN.key() == {"epochs": 600, "lr": 1e-4}
    assert models.AS_RUN.key() == {"epochs": 600, "lr": 1e-4, "geometric": True, "at_draws": True}
    recipes = [recipe for width in models.WIDTHS for recipe in choice._halving_recipes()]
    assert len({repr(recipe.key()) for recipe in recipes}) == len(set(recipes))


def test_the_lowest_validation_nll_is_found_among_infinite_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain net that is certain of a wrong answer: what is kept of it has no number."""
    scores = iter([math.inf, 0.3, 0.2, math.inf, math.inf])

    def make(options: Any, model: Any, width: int, recipes: Any) -> list[dict[str, float]]:
        return [{"nll": next(scores), "error": 1.0} for _ in recipes]

    monkeypatch.setattr(choice, "_try_recipes", make)
    for _ in range(2):
        assert choice.choose_recipe(ReplicationOptions(folder=tmp_path), "plain", 400)["best"] == 2


def test_the_table_s_mixture_half_way_is_that_of_the_grid(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same start, seed and rate: what the grid would have learned in its epochs, the table's nets had by then."""
    options = ReplicationOptions(folder=tmp_path_factory.getbasetemp() / "parts")
    kept = mixtures.mixtures_as_run(options, 400)[mixtures.mixture_name(models.BEST_MIXTURE)]
    cell = cells.cells_as_run(options, "mixture", 400)[0]
    assert [row["last"]["epoch"] for row in kept] == [cell["halfway"]["epoch"]]
    assert kept[0]["stored"]["error"] == cell["stored"]["test"]["error"]
    assert len(mixtures.mixtures_as_run(options, 400)) == len(mixtures.AUTHORS_MIXTURES)


def test_settings_are_enough_to_train_the_nets_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs, rate, batch, the KL's split, draws and start, of every column."""
    options = ReplicationOptions(full=True)
    monkeypatch.setattr(settings, "choose_recipe", lambda *arguments: {"best": 1})
    told = settings.training_settings(options, [("plain", 400)])
    recipes = {column: models.TrainingRecipe(**told[column]) for column in ("as_run", "as_written")}
    assert recipes == {"as_run": models.AS_RUN, "as_written": models.AS_WRITTEN}
    chosen = {knob: value for knob, value in told["chosen"]["plain, 400"].items() if knob != "prior"}
    assert models.TrainingRecipe(**chosen) == choice.candidate_recipes(options, "plain", 400)[1]
    assert (told["batch"], told["draws"]) == (128, {"error": 50, "error_as_run": 10})
    assert {*map(str, (*models.MEAN_START, *models.RHO_START))} <= {*re.findall(r"-?\d[.]\d", told["start"])}


def test_a_row_is_the_document_s_within_twelve_hundredths_of_a_point() -> None:
    """With 50 draws its own net of 1,200 units errs on 1.23 %, not on the 1.35 % that ten draws gave."""
    rows = {"gaussian, 1200": {"error": {"each": [1.21, 1.23, 1.25, 1.22, 1.24]}}}
    evidence = mnist_error._beside_document(rows, "gaussian", 1200)
    assert (evidence.mean, evidence.verdict) == (pytest.approx(0.0), "PASS")
    rows["gaussian, 400"] = rows["gaussian, 1200"]
    assert mnist_error._beside_document(rows, "gaussian", 400).mean == pytest.approx(-0.08)


def test_a_claim_of_attacks_is_refuted_by_no_single_net_of_those_whose_gradients_are_guessed() -> None:
    """Beliefs fall least with the gradients of one net, and most with another's."""

    def accuracy(falls: dict[str, float]) -> Any:
        return lambda cell, radius: 100.0 - 40 * float(radius) * falls[cell["name"]] + 0.1 * cell["seed"]

    by_model = {name: [{"name": name, "seed": seed} for seed in range(5)] for name in models.COMPARED_MODELS}
    least = accuracy({"gaussian": 1.0, "dropout": 3.0, "plain": 6.0})
    most = accuracy({"gaussian": 9.0, "dropout": 3.0, "plain": 6.0})
    cases = {"PASS": {"a": least, "b": least}, "FAIL": {"a": most, "b": most}, "OPEN": {"a": least, "b": most}}
    for expected, accuracies in cases.items():
        verdict = under_attack._judge(by_model, range(5), "as run", accuracies)
        assert verdict["verdict"] == expected
        assert len(verdict["parts"]) == 6


def test_products_are_rounded_in_training_on_a_gpu_alone_and_never_in_what_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    x = torch.zeros(1, 1)
    for device, precision in (("cuda", "high"), (None, "highest")):
        fleets.train_fleet(ReplicationOptions(device=device), nn.Linear(1, 1), (x, x), watch=watch)
        assert seen == {"training": precision, "judging": "highest"}
        assert torch.get_float32_matmul_precision() == "highest"


def test_the_nearest_of_several_priors_is_the_same_for_every_seed() -> None:
    """Three that scatter about the plain Gaussian's own distance are no nearer, though at each seed one of them is."""
    scatter = [0.2, -0.1, -0.1, 0.2, -0.1]
    errors = {f"narrow-{s}": [2.32 + scatter[(k + s) % 5] for k in range(5)] for s in (6, 7, 8)}
    errors["gaussian"] = [2.32] * 5
    rows = {f"{name}, {width}": {"error": {"each": each}} for name, each in errors.items() for width in models.WIDTHS}
    part = narrow_prior._judge(rows, range(5), "as run")["parts"]["400 units"]
    assert part["verdict"] == "OPEN"
