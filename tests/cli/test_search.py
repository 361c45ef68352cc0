"""`doxa search`: functions, and nets on named data or a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from doxa.nets import mlp
from doxa.search import load_policy

from .small import Command


def test_a_function_is_searched_and_goes_on_where_it_was_saved(doxa: Command, tmp_path: Path) -> None:
    whole = json.loads(doxa("search", "himmelblau", "--generations", "40", "--json").out)
    doxa("search", "himmelblau", "--generations", "20", "--out", str(tmp_path / "run"), "--quiet")
    again = doxa("search", "himmelblau", "--generations", "40", "--out", str(tmp_path / "run"), "--resume", "--json")
    result = json.loads(again.out)
    assert result == whole
    assert {"best", "value", "trajectory", "generations"} <= {*result}


def test_a_function_s_start_and_population_can_be_chosen(doxa: Command) -> None:
    result = json.loads(
        doxa("search", "sphere", "--start", "3,-2,1", "--population", "20", "--generations", "5", "--json").out
    )
    assert len(result["best"]) == 3
    assert result["generations"] == 5


def test_how_a_search_went_is_told(doxa: Command) -> None:
    output = doxa("search", "sphere", "--generations", "5").out
    assert all(word in output for word in ("value", "generations", "last scale", "by the mean", "by the log of the"))


def test_a_net_is_searched_into_a_run_that_can_be_judged(doxa: Command, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    common = ("--net", "mlp:16", "--population", "20", "--epochs", "3", "--lr", "0.01", "--out", run)
    done = doxa("search", "two_moons", *common, "--perturbation", "low_rank:2", "--objective", "f1", "--json")
    assert json.loads(done.out)["plan"]["learner"] == "search"
    assert doxa("judge", run).code == 0


def test_a_policy_is_searched_in_an_environment(doxa: Command, tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    arguments = ("search", "CartPole-v1", "--net", "mlp:8", "--population", "8", "--out", str(tmp_path / "run"))
    result = json.loads(doxa(*arguments, "--generations", "2", "--json").out)
    assert result["generations"] == 2
    assert result["return"] > 8
    again = json.loads(doxa(*arguments, "--generations", "3", "--resume", "--json").out)
    assert again["trajectory"][:2] == result["trajectory"]
    stored = load_policy(again["policy"], mlp(4, (8,), 2))
    assert stored.trajectory == again["trajectory"]
    assert float(stored.play(100, seed=1).mean()) == again["return"]


def test_processes_play_for_a_policy(doxa: Command) -> None:
    pytest.importorskip("gymnasium")
    arguments = ("search", "CartPole-v1", "--net", "mlp:8", "--population", "8", "--generations", "2", "--workers", "1")
    assert json.loads(doxa(*arguments, "--json").out)["generations"] == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("search", "himmelblau", "--epochs", "3"), "--epochs is of no use to this search"),
        (("search", "two_moons", "--generations", "3"), "belongs to the search of a function"),
        (("search", "himmelblau", "--start", "1,2,3"), "a function of exactly 2 numbers"),
        (("search", "rosenbrock", "--start", "3"), "a function of at least 2 numbers"),
        (("search", "CartPole-v1", "--device", "nonsense"), "--device nonsense cannot be used here"),
        (("search", "sphere", "--start", "a"), "takes numbers"),
        (("search", "two_moons", "--objective", "auc"), "there is no objective 'auc'"),
        (("search", "two_moons", "--perturbation", "global"), "there is no perturbation 'global'"),
        (
            ("fit", "two_moons", "--learner", "point", "--population", "7"),
            "population is of no use to the learner point",
        ),
        (("search", "two_moons", "--objective", "f1"), "need a loss for each row"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], says: str, doxa: Command, tmp_path: Path) -> None:
    more = () if arguments[1] in ("himmelblau", "rosenbrock", "sphere") else ("--out", str(tmp_path / "run"))
    done = doxa(*arguments, *more)
    assert done.code == 1
    assert says in done.message
