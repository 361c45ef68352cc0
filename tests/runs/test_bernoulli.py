"""Two classes by one output: the same predictions, judged and pruned as any other run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from doxa.errors import BadInput
from doxa.judge import judge
from doxa.judge.robustness import robustness
from doxa.runs import (
    Plan,
    labelled_rows,
    learn,
    load_training_data,
    open_run,
    predict_table,
    prune_run,
    training_data_of,
)

PLAN = Plan(net="mlp:8", learner="variational", likelihood="bernoulli", lr="0.03", epochs=60, draws=8)


def flowers(names: tuple[str, ...] = ("iris", "rose")) -> dict[str, Any]:
    x = np.random.default_rng(0).normal(size=160)
    return {"x": x, "kind": [names[int(v > 0)] for v in x]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return learn(load_training_data(flowers(), "kind"), PLAN, tmp_path_factory.mktemp("runs") / "r", progress=False)


def test_one_output_says_the_chance_of_both_classes(run: Any) -> None:
    again = open_run(run.folder)
    assert again.belief.predict(torch.zeros(2, 1), 3).outputs.shape == (3, 2, 1)
    predictions = predict_table(again, {"x": [-3.0, 3.0]})
    assert predictions["label"].tolist() == ["iris", "rose"]
    np.testing.assert_allclose(predictions["p(iris)"] + predictions["p(rose)"], 1, atol=1e-6)
    assert predictions["p(rose)"][1] > 0.8
    assert run.result()["scores"]["error"]["value"] < 0.2
    assert run.result()["data"]["classes"] == ["iris", "rose"]


def test_it_is_judged_attacked_and_pruned_by_a_table(run: Any, tmp_path: Path) -> None:
    x, y = labelled_rows(run, flowers())
    assert y.shape == (160, 1)
    assert judge(run.belief, (x, y), 8).as_dict()["scores"]["error"]["value"] < 0.2
    skill = robustness(run.belief, (x, y), [0.0, 2.0], samples=8, low=-9, high=9)
    assert skill["accuracy"][0] > skill["accuracy"][1]
    pruned_run = prune_run(run, tmp_path / "small", 0.5, judged_on=(x, y))
    assert pruned_run.result()["scores"]["error"]["value"] < 0.4
    assert set(predict_table(pruned_run, {"x": [-3.0, 3.0]})["label"]) <= {"iris", "rose"}


@pytest.mark.parametrize("learner", ["point", "dropout", "variational"])
def test_every_learner_takes_it_with_and_without_patience(learner: str, tmp_path: Path) -> None:
    plan = Plan(net="mlp:4", learner=learner, likelihood="bernoulli", epochs=2, draws=4, patience=1)
    run = learn(load_training_data("two_moons"), plan, tmp_path / "r", progress=False)
    training_data = training_data_of(run)
    assert training_data is not None
    assert training_data.test[1].shape[1] == 1
    assert labelled_rows(run, "two_moons")[1].shape[1] == 1


def test_more_classes_than_two_are_refused(tmp_path: Path) -> None:
    three = {"x": np.arange(90.0), "y": np.repeat(["a", "b", "c"], 30)}
    with pytest.raises(BadInput, match="bernoulli tells two classes apart; 'y' has 3: use categorical"):
        learn(load_training_data(three, "y"), PLAN, tmp_path / "r", progress=False)
    with pytest.raises(BadInput, match="does not fit a regression"):
        learn(
            load_training_data({"x": np.arange(90.0), "y": np.arange(90.0)}, "y"), PLAN, tmp_path / "r", progress=False
        )
    assert not (tmp_path / "r").exists()
