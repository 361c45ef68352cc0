"""Nets of variational optimisation: what is kept of a search is what it says."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from doxa import search
from doxa.learners import point
from doxa.predict.belief import Belief
from doxa.search import functions
from doxa_replicate import ReplicationOptions
from doxa_replicate.variational_optimisation.functions import score_laws
from doxa_replicate.variational_optimisation.functions.fewer_evaluations import SEARCH_SETTINGS, _evaluations_needed
from doxa_replicate.variational_optimisation.mushroom_policy import reward
from doxa_replicate.variational_optimisation.nets import convolutional, divergence, trials
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
