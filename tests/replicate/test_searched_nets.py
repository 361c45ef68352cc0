"""Nets of variational optimisation: what is kept of a search is what it says."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import doxa
from doxa import likelihoods, search
from doxa.contracts import Problem
from doxa.learners import point
from doxa.predict.belief import Belief
from doxa.search import functions
from doxa.search.distribution.gaussian import SearchDistribution, scale_groups
from doxa.search.objectives import Objective
from doxa.search.perturbations.population import make_population
from doxa.search.population_evaluator import PopulationEvaluator
from doxa.weights.layout import lay_out
from doxa.weights.probe import probe
from doxa_replicate import ReplicationOptions
from doxa_replicate.variational_optimisation.functions import score_laws
from doxa_replicate.variational_optimisation.functions.fewer_evaluations import SEARCH_SETTINGS, _evaluations_needed
from doxa_replicate.variational_optimisation.mushroom_policy import reward
from doxa_replicate.variational_optimisation.nets import convolutional, divergence, trials
from doxa_replicate.variational_optimisation.nets.as_run import searches as as_run
from doxa_replicate.variational_optimisation.nets.as_run.unit_spread import UnitSpread, UnitSpreadEstimator
from doxa_replicate.variational_optimisation.nets.followed import AVERAGE_WINDOW, moving_average
from doxa_replicate.variational_optimisation.nets.pictures import generation_loader
from doxa_replicate.variational_optimisation.nets.trials import (
    NetTrial,
    SearchLength,
    StepActivation,
    dense_net,
    scores_at_mean,
    train_trial,
)


def test_a_moving_average_is_centred_and_uses_what_there_is() -> None:
    values = np.random.default_rng(0).normal(size=200)
    averages = moving_average(values)
    half = AVERAGE_WINDOW // 2
    assert averages[100] == pytest.approx(values[100 - half : 100 + half].mean())
    assert averages[0] == pytest.approx(values[:half].mean())
    assert averages[-1] == pytest.approx(values[-half - 1 :].mean())


def test_a_level_is_passed_when_it_is_first_seen() -> None:
    curve = [[25, 80.0], [50, 96.0], [75, 94.0], [100, 97.0]]
    assert convolutional.generation_passed(curve, 95) == 50
    assert convolutional.generation_passed(curve, 98) is None


def test_the_convolutional_net_has_the_weights_it_says() -> None:
    net = convolutional.convolutional_net()
    assert sum(p.numel() for p in net.parameters()) == convolutional.ARTEFACT.reference["weights"]
    assert net(torch.zeros(2, 784)).shape == (2, 10)


def spread_estimator(relative: bool) -> tuple[UnitSpreadEstimator, SearchDistribution]:
    """The author's perturbations of a small net, 40 in pairs, with a σ for each tensor."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 10))
    layout, start = lay_out(net)
    uses, _ = probe(net, layout, start, {}, torch.zeros(4, 6))
    problem = Problem(net, layout, uses, likelihoods.categorical(), start[None], {}, ((0,),), True)
    evaluator = PopulationEvaluator(problem, make_population(40, True, (0, "test")), Objective(None), True, True)
    factors = torch.linspace(0.1, 3, layout.size) if relative else None
    scale = torch.tensor([0.1, 0.2, 0.3, 0.4])
    distribution = SearchDistribution(start, scale, scale_groups("tensor", layout), factors)
    return UnitSpread(first_scale=0.05).start(evaluator), distribution


@pytest.mark.parametrize("relative", [False, True])
def test_every_tensor_of_a_perturbation_as_run_has_unit_spread(relative: bool) -> None:
    estimator, distribution = spread_estimator(relative)
    spread = estimator.spread(distribution, 0, slice(0, 20))
    steps = (estimator.points(distribution, 0, slice(0, 20)) - distribution.mean).unflatten(0, (20, 2))
    torch.testing.assert_close(steps[:, 0], -steps[:, 1])
    for slot, scale in zip(estimator.evaluator.problem.layout.slots, distribution.scale, strict=True):
        torch.testing.assert_close(spread[:, slot.span].std(1), torch.ones(20))
        torch.testing.assert_close(steps[:, 0, slot.span], scale * spread[:, slot.span], rtol=1e-4, atol=1e-6)


def test_slopes_as_run_are_the_author_s_sums() -> None:
    estimator, distribution = spread_estimator(True)
    n, weights = 40, torch.randn(40)
    e = estimator.spread(distribution, 3, slice(0, 20))
    both = torch.stack([e, -e], 1).flatten(0, 1)
    slopes = estimator.slopes(distribution, 3, weights)
    start = 0
    by_coordinate = search.plain(slopes, distribution, search.log_variance)[1]
    for k, (size, scale) in enumerate(zip(distribution.groups or (), distribution.scale, strict=True)):
        part = both[:, start : start + size]
        expected = scale / 0.05**2 * (weights / n) @ part / n  # his utilities add up to what ours average to
        torch.testing.assert_close(slopes.by_mean[start : start + size], expected, rtol=1e-4, atol=1e-4)
        by_log_variance = (weights / n) @ (part.square().sum(1) - size) / n
        torch.testing.assert_close(by_coordinate[k], by_log_variance, rtol=1e-3, atol=1e-4)
        start += size


def test_minibatches_hold_no_row_twice_and_differ() -> None:
    rows = next(iter(as_run.Minibatches(50, 12, 9))).view(9, 12)
    assert all(len(minibatch.unique()) == 12 for minibatch in rows)
    assert int(rows.max()) < 50
    assert len({tuple(sorted(minibatch.tolist())) for minibatch in rows}) == 9


def test_the_author_s_net_goes_by_its_batch_and_has_his_weights() -> None:
    net = as_run.authors_net().eval()
    assert sum(p.numel() for p in net.parameters()) == 22_000
    assert sum(p.numel() for m in net for p in m.parameters() if isinstance(m, nn.Conv2d | nn.Linear)) == 21_840
    x = torch.randn(8, 784)
    assert not torch.allclose(net(x)[:4], net(x[:4]))
    torch.testing.assert_close(net(x).exp().sum(1), torch.ones(8))


def test_his_steps_dampen_what_moves_the_scales_and_decay_the_mean_alone() -> None:
    mean, scale = (torch.ones(3, requires_grad=True) for _ in range(2))
    optimiser = as_run.authors_sgd([mean, scale])
    for _ in range(2):
        mean.grad, scale.grad = torch.full((3,), 2.0), torch.full((3,), 2.0)
        optimiser.step()
    first = 1 - 0.05 * 2.001
    torch.testing.assert_close(mean.detach(), torch.full((3,), first - 0.05 * (0.9 * 2.001 + 2 + 0.001 * first)))
    torch.testing.assert_close(scale.detach(), torch.full((3,), 1 - 0.05 * (2 + (0.9 * 2 + 0.1 * 2))))


def test_a_net_learns_as_run() -> None:
    torch.manual_seed(0)
    x = torch.randn(200, 2)
    y = (x.norm(dim=1) > 1.1).long()
    norm = nn.BatchNorm1d(16, track_running_stats=False)
    belief = doxa.fit(
        nn.Sequential(nn.Linear(2, 16), norm, nn.ReLU(), nn.Linear(16, 10), nn.LogSoftmax(1)),
        as_run.minibatch_loader((x, y), 20, 50),
        learner=as_run.ADAPTED[as_run.BY_TENSOR].build_learner(50),
        likelihood=likelihoods.categorical(),
        epochs=30,
        lr=as_run.RATE,
        optimiser=as_run.authors_sgd,
        size=200,
        progress=False,
    )
    history = belief.record.history
    assert history[-1]["nll"] < 0.6 * history[0]["nll"]
    scales = as_run.tensor_scales(belief)
    assert len({round(scale, 6) for scale in scales.values()}) == len(scales) == 4


def test_a_search_as_run_that_ran_away_has_no_end() -> None:
    lasting = {"lasted": 3, "norm": [1.0], "scales": {"a": [0.5]}, "end": dict.fromkeys(as_run.ENDS, 2.0)}
    gone = {"lasted": 1, "curve": [], "end": dict.fromkeys(as_run.ENDS)}
    assert as_run.mean_of_lasting([lasting, gone], "norm") == [1.0]
    assert as_run.mean_scales([gone, lasting]) == {"a": [0.5]}
    end = as_run.ends_of([lasting, gone])["accuracy"]
    assert end["each"] == [2.0, None]
    assert end["mean"] == 2.0
    assert as_run.format_end(as_run.ends_of([gone])["accuracy"], 2) == "∞"


def test_divergence_is_the_mean_squared_length_of_what_outputs_move() -> None:
    a, b = torch.zeros(4, 3), torch.full((4, 3), 2.0)
    assert divergence.divergence(a, b) == pytest.approx(12.0)


def test_the_corrected_score_is_the_slope_and_the_printed_ones_are_not() -> None:
    truth, corrected, *printed = score_laws._univariate_slopes().values()
    assert corrected == pytest.approx(truth)
    assert all(abs(value - truth) > 0.5 for value in printed)


def test_stretches_draw_other_rows_each_time() -> None:
    rows = torch.arange(1000)[:, None].float(), torch.arange(1000)
    loader = generation_loader(rows, 10, 5)
    first, second = ([y for _, y in loader] for _ in range(2))
    assert [len(y) for y in first] == [10] * 5
    assert set(torch.cat(first).tolist()) != set(torch.cat(second).tolist())


@pytest.mark.parametrize("learner", [search.learner(size=4), search.learner(search.weight_space(), size=4), point()])
def test_a_trial_that_was_broken_off_goes_on_to_the_same_bits(
    learner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = torch.randn(40, 784), torch.arange(40) % 10
    trial = NetTrial("a net", learner, lambda: dense_net((5,)))

    def train(folder: Path) -> dict[str, Any]:
        options = ReplicationOptions(False, None, None, folder, lambda text: None)
        return train_trial(options, "net", trial, 1e-2, 0, (x, y), (x, y), SearchLength(8, 10, 2))

    whole = train(tmp_path / "whole")
    calls = iter(range(100))

    def interrupt(belief: Belief, rows: Any) -> dict[str, float]:
        if next(calls) == 5:
            raise KeyboardInterrupt
        return scores_at_mean(belief, rows)

    with monkeypatch.context() as patched:
        patched.setattr(trials, "scores_at_mean", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "broken")
    assert list((tmp_path / "broken").glob("*/*"))
    resumed = train(tmp_path / "broken")
    assert [point[0] for point in resumed["curve"]] == [2, 4, 6, 8]
    assert whole | {"seconds": 0} == resumed | {"seconds": 0}
    assert [path.suffix for path in (tmp_path / "broken").iterdir()] == [".json"]


def test_steps_have_no_slope() -> None:
    net, x = dense_net((5,), StepActivation), torch.randn(3, 784)
    F.cross_entropy(net(x), torch.tensor([0, 1, 2])).backward()
    assert net[0].weight.grad is None or float(net[0].weight.grad.abs().sum()) == 0


def test_a_step_is_told_by_the_word_that_kept_trials_have() -> None:
    settings = NetTrial("a net", search.learner(), partial(dense_net, (5,), StepActivation)).as_settings()
    assert settings["net"][0] == ["Sequential", "Linear", "Step", "Linear"]


def test_rewards_are_those_of_the_action_that_is_taken() -> None:
    output = torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])  # eats, eats, passes by
    assert reward(output, torch.tensor([1, 0, 0])).tolist() == [5.0, -15.0, 0.0]


@pytest.mark.parametrize("name", ["utilities", "importance mixing"])
def test_evaluations_are_counted_until_the_lowest_is_near(name: str) -> None:
    outcome = _evaluations_needed(SEARCH_SETTINGS[name], functions.sphere, [1.0, 1.0], 0, 200)
    assert outcome["best"] < 1e-6
    assert 0 < outcome["evaluations"] < 200 * 100
    assert _evaluations_needed(SEARCH_SETTINGS[name], functions.sphere, [1.0, 1.0], 0, 2)["evaluations"] is None
