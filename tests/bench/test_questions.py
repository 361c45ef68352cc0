"""Every question keeps to one seam: what it yields is JSON, grows, and can be shown at any time."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import torch

import doxa_bench
from doxa.errors import BadInput
from doxa_bench import asking, gradient_variance, prediction_cost, time_to_accuracy
from doxa_bench.__main__ import text
from doxa_bench.questions import TABLE
from doxa_bench.settings import QUICK, Settings
from doxa_bench.tables import Table, refusals, with_error

FOLDER = Path(doxa_bench.__file__).parent
RESULTS = Path(__file__).parents[2] / "results" / "bench"


@pytest.mark.parametrize("name", TABLE)
def test_a_question_is_a_file_that_begins_with_it(name: str) -> None:
    words = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8")))
    assert words is not None
    assert words.splitlines()[0] == TABLE[name].asks


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", [name for name in TABLE if name != "captured_cost"])
def test_an_answer_is_json_and_tables_all_the_way(name: str, tmp_path: Path) -> None:
    said: list[object] = []
    found = list(asking.answers(name, Settings(rounds=2, say=said.append, progress=said.append)))
    assert [each["complete"] for each in found] == [False] * (len(found) - 1) + [True]
    assert said
    for each in found:
        shown = asking.tables(name, each)
        assert shown
        for table in shown:
            assert all(len(row) == len(table.heads) for row in table.rows)
            assert all(isinstance(cell, str) for row in table.rows for cell in row)
    assert any(table.rows for table in asking.tables(name, found[-1]))
    path = asking.write(tmp_path, name, found[-1])
    assert path.name == (f"{name}_cpu.json" if TABLE[name].everywhere else f"{name}.json")
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept == found[-1]
    assert {"settings", "seeds", "versions", "device", "commit", "seconds"} <= {*kept}
    assert asking.tables(name, kept) == asking.tables(name, found[-1])


@pytest.mark.parametrize("name", TABLE)
def test_what_is_kept_in_the_repository_can_be_shown(name: str) -> None:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        pytest.skip("not measured yet")
    assert any(table.rows for table in asking.tables(name, json.loads(path.read_text(encoding="utf-8"))))


@pytest.mark.usefixtures("small")
def test_only_some_cases_are_measured() -> None:
    *_, found = asking.answers("step_cost", Settings(rounds=1, only="local, drop"))
    assert [*found["steps"]] == ["tiny local gaussian", "tiny dropout"]
    assert found["settings"]["only"] == "local, drop"


@pytest.mark.usefixtures("small")
def test_noise_makes_gradients_vary_more_than_the_batch_alone() -> None:
    """Of equal beliefs and batches, and a scale far above the start's."""
    train, _, _ = gradient_variance.digits()
    net = gradient_variance.new("tiny")
    scales = {name: torch.full_like(p, 0.5) for name, p in net.named_parameters()}
    known = gradient_variance.gradients(net, scales, train, {}, Settings())
    found = gradient_variance.variances(known, train, 12, lambda: None)
    assert found["shared"]["by_mean"]["ratio"] == 1.0
    assert found["plain net"]["by_mean"]["ratio"] < 0.9
    assert "by_rho" not in found["plain net"]
    assert found["shared, two samples"]["by_mean"]["ratio"] < 1.0
    layers = found["local"]["by_mean"]["layers"]
    assert sum(layers.values()) == pytest.approx(found["local"]["by_mean"]["variance"])


@pytest.mark.usefixtures("small")
def test_who_has_reached_both_targets_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_to_accuracy, "TARGETS", {"error": 1.0, "nll": 1e9})
    *_, found = asking.answers("time_to_accuracy", Settings(rounds=3))
    assert all(len(own["history"]) == 1 for own in found["contenders"].values())
    monkeypatch.setattr(time_to_accuracy, "TARGETS", {"error": -1.0, "nll": 1e9})
    *_, found = asking.answers("time_to_accuracy", Settings(rounds=3))
    assert all(len(own["history"]) == 3 and "error" not in own for own in found["contenders"].values())
    (table,) = asking.tables("time_to_accuracy", found)
    assert {row[2] for row in table.rows} == {"–"}


def test_quarters_make_an_epoch_of_the_same_batches_for_all() -> None:
    quarters = [torch.cat(time_to_accuracy.quarter_of_an_epoch(1024, q)) for q in range(4)]
    assert sorted(torch.cat(quarters).tolist()) == list(range(1024))
    again = torch.cat(time_to_accuracy.quarter_of_an_epoch(1024, 2))
    assert torch.equal(again, quarters[2])


@pytest.mark.usefixtures("small")
def test_a_cpu_without_bfloat16_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_cost, "cannot_lower", lambda device: "torch cannot multiply in it here: why")
    *_, found = asking.answers("prediction_cost", Settings(rounds=1))
    assert "scores" not in found
    (table,) = asking.tables("prediction_cost", found)
    assert "bfloat16: torch cannot multiply in it here: why" in table.notes


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_question_about_gpus_needs_one() -> None:
    with pytest.raises(BadInput, match="finds no GPU"):
        list(asking.answers("captured_cost", Settings()))


def test_settings_of_a_look() -> None:
    assert Settings(quick=True).turns(31) == QUICK
    assert Settings(rounds=7, quick=True).turns(31) == 7
    assert Settings().seconds(60.0) == 60.0 > Settings(quick=True).seconds(60.0)
    assert Settings().wants("anything")


def test_names_of_questions() -> None:
    assert asking.named(["memory", "step_cost", "memory"], "cpu") == ["memory", "step_cost"]
    assert "captured_cost" not in asking.named(["all"], "cpu")
    assert asking.named(["all"], "cuda") == ["captured_cost", "scaling", "search_cost", "search_scaling"]
    with pytest.raises(BadInput, match="did you mean 'step_cost'"):
        asking.named(["step_cots"], "cpu")


def test_words_of_tables() -> None:
    assert with_error({"mean": 0.056412, "se": 0.001048}) == "0.0564\u00a0±\u00a00.0010"
    assert with_error({"mean": 1234.5, "se": 87.6}) == "1234\u00a0±\u00a088"
    missing = {
        "a": {"x": "is not installed", "y": "has no a noise", "z": "fails: E: w"},
        "b": {"x": "is not installed"},
    }
    assert refusals(missing) == ["z fails: E: w (a)", "not installed: x"]
    assert text(Table("t", ("net", "ms"), [("a", "1.5")], notes=["n"])) == "t\nnet   ms\na    1.5\n- n"
