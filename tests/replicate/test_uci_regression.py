"""The regression benchmark: units of the training rows, choices without test rows, densities of the targets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import doxa
from doxa import data, learners, likelihoods, rates
from doxa.contracts import Moment
from doxa.errors import BadInput
from doxa.nets import mlp
from doxa.predict.draws import Draws
from doxa_replicate import OPEN, TABLE, ReplicationOptions, perform
from doxa_replicate.weight_uncertainty import uci_regression
from doxa_replicate.weight_uncertainty.uci_regression import published, tables
from doxa_replicate.weight_uncertainty.uci_regression.contest import (
    WIDENINGS,
    BenchmarkSize,
    SplitBenchmark,
    evaluate_method,
)
from doxa_replicate.weight_uncertainty.uci_regression.density import grid_noise, log_density, squared_error
from doxa_replicate.weight_uncertainty.uci_regression.ended import TruncatedSchedule
from doxa_replicate.weight_uncertainty.uci_regression.methods import METHODS, Candidate, one_hidden_layer
from doxa_replicate.weight_uncertainty.uci_regression.splits import FOLDS, Splits, standardised_splits

NAME = "bostonHousing"
SMALL = BenchmarkSize(width=6, batch=64, epochs=2)


@pytest.fixture(scope="module")
def splits() -> Splits:
    return standardised_splits(NAME, [3, 0])


@pytest.fixture(scope="module")
def quick_result() -> dict[str, Any]:
    return perform(TABLE["weight-uncertainty/uci-regression"], ReplicationOptions())


def test_the_table_holds_the_training_rows_alone_in_units_of_their_own(splits: Splits) -> None:
    table = data.uci_regression(NAME)
    for s, number in enumerate(splits.numbers):
        train, test = table.splits[number]
        rows = splits.all_rows(s)
        assert len(rows) == len(train)
        x, y = table.x[train], table.y[train]
        for ours, theirs, within in (
            (splits.x[rows], x, x),
            (splits.x_test[s], table.x[test], x),
            (splits.y[rows], y, y),
            (splits.y_test[s], table.y[test], y),
        ):
            np.testing.assert_allclose(ours, (theirs - within.mean(0)) / within.std(0), atol=1e-5)
        assert float(splits.unit[s]) == pytest.approx(y.std())


def test_a_column_that_does_not_vary_is_centred() -> None:
    naval = standardised_splits("naval-propulsion-plant", [0])
    spread = naval.x.std(0)
    assert bool(naval.x.isfinite().all())
    assert bool(((spread < 1e-3) | ((spread - 1).abs() < 1e-3)).all())
    assert int((spread < 1e-3).sum()) == 2  # the compressor's inlet


def test_folds_are_rows_of_their_split_and_never_overlap(splits: Splits) -> None:
    assert splits.folds == FOLDS
    for s in range(2):
        all_rows, held_before = set(splits.all_rows(s).tolist()), set()
        for number in range(splits.folds):
            learned, held_out = (set(rows.tolist()) for rows in splits.fold(s, number))
            assert learned | held_out == all_rows
            assert not learned & held_out
            assert not held_before & held_out
            held_before |= held_out
        assert len(held_before) == splits.rows_per_split // FOLDS * FOLDS
    lengths = {len(splits.fold(s, f)[0]) for s in range(2) for f in range(FOLDS)}
    assert len(lengths) == 1


def test_many_rows_are_set_aside_once() -> None:
    assert standardised_splits("power-plant", [0]).folds == 1


def test_a_split_that_is_not_there_is_bad_input() -> None:
    standardised_splits(NAME, [0])
    with pytest.raises(BadInput, match="splits 0 to 19"):
        standardised_splits(NAME, [20])
    with pytest.raises(BadInput, match="splits 0 to 19"):
        standardised_splits(NAME, [])


def per_input_draws(samples: int, rows: int) -> Draws:
    outputs = torch.randn(samples, rows, 2, generator=torch.Generator().manual_seed(1))
    return Draws(outputs, likelihoods.gaussian_per_input(0.05), {})


def test_the_density_is_one_in_the_targets_own_units() -> None:
    mean, unit, draws = 22.5, 9.2, per_input_draws(7, 1)
    y = torch.linspace(mean - 12 * unit, mean + 12 * unit, 40_001, dtype=torch.float64)
    wide = Draws(draws.outputs.expand(-1, len(y), -1), draws.likelihood, {})
    for density in log_density(wide, (y - mean) / unit, unit, (0.8, 1.0, 2.5), 0.05).exp():
        assert float(torch.trapezoid(density, y)) == pytest.approx(1, abs=1e-5)


def test_the_density_is_the_one_by_hand() -> None:
    unit, least, draws = 3.0, 0.4, per_input_draws(5, 4)
    y = torch.tensor([0.3, -1.0, 2.0, 0.0])
    ours = log_density(draws, y, unit, (1.0, 1.5), least)
    for w, widening in enumerate((1.0, 1.5)):
        for row in range(4):
            total = 0.0
            for location, raw in draws.outputs[:, row].tolist():
                scale = unit * max(widening * (0.05 + math.log1p(math.exp(raw))), least)
                distance = unit * (float(y[row]) - location)
                total += math.exp(-0.5 * (distance / scale) ** 2) / (scale * math.sqrt(2 * math.pi)) / 5
            assert float(ours[w, row]) == pytest.approx(math.log(total), abs=1e-5)
    mean = draws.outputs[:, :, 0].mean(0)
    torch.testing.assert_close(squared_error(draws, y), (mean - y).double().square())


def test_one_noise_has_a_density_too() -> None:
    outputs = torch.zeros(2, 3, 1)
    draws = Draws(outputs, likelihoods.gaussian_learned(), {"log_scale": torch.full((2, 1, 1), math.log(0.5))})
    ours = log_density(draws, torch.zeros(3), 2.0, (1.0,), 1e-3)
    torch.testing.assert_close(ours, torch.full((1, 3), -0.5 * math.log(2 * math.pi), dtype=torch.float64))


def test_no_noise_is_finer_than_the_grid_of_the_targets() -> None:
    marks = torch.tensor([3.0, 5.0, 6.0, 5.0, 8.0])
    assert grid_noise(marks) == pytest.approx(1 / math.sqrt(12))
    assert grid_noise(torch.ones(3)) == 0
    wine = standardised_splits("wine-quality-red", [0])
    assert SplitBenchmark(wine, SMALL).least_noise == pytest.approx(1 / math.sqrt(12) / float(wine.unit[0]), rel=1e-5)


def test_an_ended_schedule_is_a_shorter_run() -> None:
    whole = rates.cosine(0.1, 0.01)
    ended = TruncatedSchedule(whole, 0.3)
    for step in range(100):
        expected = whole(Moment(step, 30, 0, 1)) if step < 30 else 0.0
        assert ended(Moment(step, 100, 0, 1)) == expected
    for share in (0.0, 1.5):
        with pytest.raises(BadInput, match="share"):
            TruncatedSchedule(whole, share)


def test_a_member_that_ends_early_is_a_shorter_training() -> None:
    x = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
    settings: dict[str, Any] = {
        "learner": learners.variational(doxa.priors.gaussian(1.0), doxa.noise.local),
        "likelihood": likelihoods.gaussian_learned(),
        "batch_size": 8,
        "progress": False,
    }
    net, schedule = mlp(3, (5,), 1), rates.cosine(0.02)
    longer = doxa.fit(net, (x, x[:, 0]), epochs=10, lr=TruncatedSchedule(schedule, 0.5), **settings)
    shorter = doxa.fit(net, (x, x[:, 0]), epochs=5, lr=schedule, **settings)
    torch.testing.assert_close(longer.posterior.mean, shorter.posterior.mean)
    torch.testing.assert_close(longer.posterior.scale, shorter.posterior.scale)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_settings_that_are_tried_can_be_told_apart(method: str, full: bool) -> None:
    candidates = METHODS[method](one_hidden_layer(3, 4), full)
    assert len({str(candidate) for candidate in candidates}) == len(candidates) > 1


def test_nothing_is_chosen_by_test_rows(splits: Splits) -> None:
    scores = evaluate_method("dropout", SplitBenchmark(splits, SMALL), False)
    changed = replace(splits, y_test=-splits.y_test, x_test=splits.x_test.flip(1))
    blind_scores = evaluate_method("dropout", SplitBenchmark(changed, SMALL), False)
    for chosen in ("setting", "widening", "aside"):
        assert scores[chosen] == blind_scores[chosen]
    assert scores["log_likelihood"] != blind_scores["log_likelihood"]


def test_a_setting_that_diverges_is_not_chosen(splits: Splits) -> None:
    wild = Candidate("wild", learners.point(), rates.constant(1e30), True)
    tame = Candidate("tame", learners.point(), rates.constant(1e-3), True)
    scores = SplitBenchmark(splits, SMALL).score_candidates([wild, tame])
    assert scores.shape == (2, 2, len(WIDENINGS))
    assert bool(scores[:, 0].isneginf().all())
    assert bool(scores[:, 1].isfinite().all())


def test_what_was_set_aside_scores_as_its_own_rows_do(splits: Splits) -> None:
    split = replace(
        splits, numbers=splits.numbers[:1], x=splits.x[: splits.rows_per_split], y=splits.y[: splits.rows_per_split]
    )
    benchmark, candidate = SplitBenchmark(split, SMALL), METHODS["ensemble"](one_hidden_layer(13, 6), False)[1]
    total = 0.0
    for number in range(FOLDS):
        learned, held_out = split.fold(0, number)
        key = (split.numbers[0], number, "start")
        (belief,) = doxa.fleet(
            [benchmark.start_net(key, True)],
            (split.x[learned], split.y[learned]),
            learners=[candidate.learner],
            likelihood=benchmark.likelihood(True),
            seeds=[doxa.random.keys.seed_of(key) % 2**31],
            lr=[candidate.rate],
            epochs=SMALL.epochs,
            batch_size=SMALL.batch,
            progress=False,
        )
        log_p = belief.predict(split.x[held_out]).log_prob(split.y[held_out]).double()
        total += float((log_p.logsumexp(0) - math.log(len(log_p))).mean()) - math.log(float(split.unit[0]))
    ours = benchmark.score_candidates([candidate])[0, 0, WIDENINGS.index(1.0)]
    assert float(ours) == pytest.approx(total / FOLDS, abs=2e-3)


def test_a_quick_run_has_scores_of_every_method(quick_result: dict[str, Any]) -> None:
    by_method = quick_result["numbers"]["sets"][NAME]
    assert set(by_method) == set(METHODS)
    for scores in by_method.values():
        for key in ("log_likelihood", "rmse", "aside", "widening"):
            assert len(scores[key]["each"]) == 2
            assert scores[key]["mean"] == pytest.approx(np.mean(scores[key]["each"]), rel=1e-4)  # rounded
        assert scores["log_likelihood"]["se"] > 0
        assert sum(scores["chosen"].values()) == 2
        # Far better than the best constant: 1.42 + log 9.2 nats, and 9.2 thousand dollars.
        assert scores["log_likelihood"]["mean"] > -3.2
        assert scores["rmse"]["mean"] < 6
    (verdict,) = quick_result["verdicts"]
    assert verdict["verdict"] == OPEN


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_a_gpu_finds_much_the_same(quick_result: dict[str, Any]) -> None:
    gpu_result = perform(TABLE["weight-uncertainty/uci-regression"], ReplicationOptions(device="cuda"))
    for method, scores in gpu_result["numbers"]["sets"][NAME].items():
        cpu_mean = quick_result["numbers"]["sets"][NAME][method]["log_likelihood"]["mean"]
        assert scores["log_likelihood"]["mean"] == pytest.approx(cpu_mean, abs=0.2)


def test_a_mean_that_is_one_split_s_is_said_to_be() -> None:
    rmse = {"rmse": {"each": [4.9, 10.2, 293.9, 4.6, 4.5]}}
    note = tables._outlier_note(
        {"protein-tertiary-structure": {"dropout": rmse, "ensemble": {"rmse": {"each": [4.6, 4.7]}}}}
    )
    assert note == " With dropout on Protein it is from 4.5 to 294 over splits, 4.9 in the median."


def test_tables_stand_beside_the_published_figures(quick_result: dict[str, Any]) -> None:
    result_tables = TABLE["weight-uncertainty/uci-regression"].show(quick_result)
    assert [table.title.split()[0] for table in result_tables] == ["Log-likelihood", "RMSE", "What"]
    for table in result_tables:
        assert {len(row) for row in table.rows} == {len(table.headers)}
    for table in result_tables[:2]:
        assert all(any(cell.startswith("**") for cell in column) for column in list(zip(*table.rows, strict=True))[1:])
    assert any("-2.41" in cell for row in result_tables[0].rows for cell in row)


def test_the_claim_is_held_against_the_best_of_three_variational_figures() -> None:
    assert published.best_variational("kin8nm") == 1.14
    assert published.best_variational("protein-tertiary-structure") == -2.84
    assert uci_regression.reaches_published("concrete", {"mean": -3.08, "se": 0.03})
    assert not uci_regression.reaches_published("concrete", {"mean": -3.08, "se": 0.01})
    assert set(uci_regression.SIZES) == set(published.SETS)
