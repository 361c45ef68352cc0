"""What is assumed of images, and the scale that a known growth starts at."""

from __future__ import annotations

import math

import pytest
import torch

from doxa import kl_weights, rates
from doxa.errors import BadInput
from doxa.runs.image_recipe import END_SCALE, assume_for_images, start_scale
from doxa.runs.training_data import TrainingData


def images(rows: int) -> TrainingData:
    pair = torch.zeros(rows, 1, 8, 8), torch.zeros(rows, dtype=torch.int64)
    return TrainingData("drawn", "classification", "label", ("a", "b"), pair, pair, {})


def test_the_start_is_where_the_growth_leads_to_the_end() -> None:
    """600 epochs of 468 minibatches at 1e-4 move ρ by 2.01: from 0.0110, the middle of the paper's starts, to 0.079."""
    growth = kl_weights.geometric().growth(468)
    assert start_scale(rates.constant(1e-4), 468, 600, growth, end=0.0792) == pytest.approx(
        math.log1p(math.exp(-4.5)), rel=0.01
    )
    short, long = (start_scale(rates.cosine(2e-3), 469, epochs, growth) for epochs in (1, 40))
    assert long < short < END_SCALE
    assert start_scale(rates.constant(1.0), 469, 1000, growth) == pytest.approx(1e-4, rel=1e-3), "never without noise"


def test_many_images_get_a_wide_net_and_few_a_small_one() -> None:
    assert assume_for_images({}, images(10_000))["net"] == "mlp:400,400"
    few = assume_for_images({}, images(100))
    assert "net" not in few
    assert (few["kl_weight"], few["prior"]) == ("geometric", "gaussian:1")


def test_what_is_said_is_not_assumed() -> None:
    said = {"kl_weight": "0.1", "epochs": 3}
    assert assume_for_images(said, images(100)) == {"learner": "variational"}
    assert assume_for_images({"learner": "point"}, images(100)) == {}
    by_rate = [assume_for_images({"lr": rate}, images(1000))["posterior"] for rate in ("1e-4", "1e-2")]
    assert by_rate[0] != by_rate[1], "a higher rate lets scales grow further, and they start lower"
    assert "lr" not in assume_for_images({"lr": "1e-2"}, images(1000))
    assert "posterior" not in assume_for_images({"posterior": "mean_field:scale=0.1"}, images(1000))
    with pytest.raises(BadInput, match="epochs must be"):
        assume_for_images({"epochs": 0}, images(100))


def test_to_say_what_is_assumed_changes_nothing() -> None:
    assumed = assume_for_images({}, images(10_000))
    for name, value in assumed.items():
        if name != "learner":
            assert {**assume_for_images({name: value}, images(10_000)), name: value} == assumed


def test_nothing_of_adam_is_assumed_of_another_optimiser() -> None:
    """Under gradient descent halving shares are even ones, and the scales do not grow by what is known of Adam."""
    assert assume_for_images({"optimiser": "sgd", "epochs": 3}, images(100)) == {"learner": "variational"}
    assert assume_for_images({"optimiser": "adam"}, images(1000)) == assume_for_images({}, images(1000))
    short_memory = assume_for_images({"optimiser": "adam:betas=(0.9,0.9)"}, images(1000))
    assert short_memory["posterior"] != assume_for_images({}, images(1000))["posterior"]


def test_a_table_is_left_to_auto() -> None:
    x = torch.zeros(20_000, 3)
    rows = TrainingData("table", "regression", "y", (), (x, x[:, :1]), (x, x[:, :1]), {})
    assert assume_for_images({}, rows) == {}
