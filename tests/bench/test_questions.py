"""Every question keeps to one seam: what it yields is JSON, grows, and can be shown at any time."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import torch

import doxa_bench
from doxa.errors import BadInput
from doxa_bench import gradient_variance, prediction_cost, runner, time_to_accuracy
from doxa_bench.__main__ import plain_text
from doxa_bench.questions import TABLE
from doxa_bench.settings import QUICK, BenchSettings
from doxa_bench.tables import BenchTable, missing_library_notes, with_error

FOLDER = Path(doxa_bench.__file__).parent
RESULTS = Path(__file__).parents[2] / "results" / "bench"


@pytest.mark.parametrize("name", TABLE)
def test_a_question_is_a_file_that_begins_with_it(name: str) -> None:
    file, folder = FOLDER / f"{name}.py", FOLDER / name / "__init__.py"
    docstring = ast.get_docstring(ast.parse((file if file.exists() else folder).read_text(encoding="utf-8")))
    assert docstring is not None
    assert docstring.splitlines()[0] == TABLE[name].asks


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", [name for name in TABLE if name != "captured_cost"])
def test_an_answer_is_json_and_tables_all_the_way(name: str, tmp_path: Path) -> None:
    messages: list[object] = []
    results = list(
        runner.measure_question(name, BenchSettings(rounds=2, say=messages.append, progress=messages.append))
    )
    assert [result["complete"] for result in results] == [False] * (len(results) - 1) + [True]
    assert messages
    for result in results:
        tables = runner.result_tables(name, result)
        assert tables
        for table in tables:
            assert all(len(row) == len(table.headers) for row in table.rows)
            assert all(isinstance(cell, str) for row in table.rows for cell in row)
    assert any(table.rows for table in runner.result_tables(name, results[-1]))
    path = runner.write_result(tmp_path, name, results[-1])
    assert path.name == (f"{name}_cpu.json" if TABLE[name].everywhere else f"{name}.json")
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored == results[-1]
    assert {"settings", "seeds", "versions", "device", "commit", "seconds"} <= {*stored}
    assert runner.result_tables(name, stored) == runner.result_tables(name, results[-1])


@pytest.mark.parametrize("name", TABLE)
def test_what_is_kept_in_the_repository_can_be_shown(name: str) -> None:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        pytest.skip("not measured yet")
    assert any(table.rows for table in runner.result_tables(name, json.loads(path.read_text(encoding="utf-8"))))


@pytest.mark.usefixtures("small")
def test_only_some_cases_are_measured() -> None:
    *_, result = runner.measure_question("step_cost", BenchSettings(rounds=1, only="local, drop"))
    assert [*result["steps"]] == ["tiny local gaussian", "tiny dropout"]
    assert result["settings"]["only"] == "local, drop"


@pytest.mark.usefixtures("small")
def test_noise_makes_gradients_vary_more_than_the_batch_alone() -> None:
    """Of equal beliefs and batches, and a scale far above the start's."""
    train, _, _ = gradient_variance.mnist_splits()
    net = gradient_variance.new_net("tiny")
    scales = {name: torch.full_like(p, 0.5) for name, p in net.named_parameters()}
    functions = gradient_variance.gradient_functions(net, scales, train, {}, BenchSettings())
    variances = gradient_variance.measure_variances(functions, train, 12, lambda: None)
    assert variances["shared"]["by_mean"]["ratio"] == 1.0
    assert variances["plain net"]["by_mean"]["ratio"] < 0.9
    assert "by_rho" not in variances["plain net"]
    assert variances["shared, two samples"]["by_mean"]["ratio"] < 1.0
    layers = variances["local"]["by_mean"]["layers"]
    assert sum(layers.values()) == pytest.approx(variances["local"]["by_mean"]["variance"])


@pytest.mark.usefixtures("small")
def test_who_has_reached_both_targets_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_to_accuracy, "TARGETS", {"error": 1.0, "nll": 1e9})
    *_, result = runner.measure_question("time_to_accuracy", BenchSettings(rounds=3))
    assert all(len(contender["history"]) == 1 for contender in result["contenders"].values())
    monkeypatch.setattr(time_to_accuracy, "TARGETS", {"error": -1.0, "nll": 1e9})
    *_, result = runner.measure_question("time_to_accuracy", BenchSettings(rounds=3))
    assert all(
        len(contender["history"]) == 3 and "error" not in contender for contender in result["contenders"].values()
    )
    (table,) = runner.result_tables("time_to_accuracy", result)
    assert {row[2] for row in table.rows} == {"–"}


def test_quarters_make_an_epoch_of_the_same_batches_for_all() -> None:
    quarters = [torch.cat(time_to_accuracy.quarter_of_an_epoch(1024, q)) for q in range(4)]
    assert sorted(torch.cat(quarters).tolist()) == list(range(1024))
    again = torch.cat(time_to_accuracy.quarter_of_an_epoch(1024, 2))
    assert torch.equal(again, quarters[2])


@pytest.mark.usefixtures("small")
def test_a_cpu_without_bfloat16_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_cost, "why_no_bfloat16", lambda device: "torch cannot multiply in it here: why")
    *_, result = runner.measure_question("prediction_cost", BenchSettings(rounds=1))
    assert "scores" not in result
    (table,) = runner.result_tables("prediction_cost", result)
    assert "bfloat16: torch cannot multiply in it here: why" in table.notes


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_question_about_gpus_needs_one() -> None:
    with pytest.raises(BadInput, match="finds no GPU"):
        list(runner.measure_question("captured_cost", BenchSettings()))


def test_settings_of_a_look() -> None:
    assert BenchSettings(quick=True).round_count(31) == QUICK
    assert BenchSettings(rounds=7, quick=True).round_count(31) == 7
    assert BenchSettings().time_limit(60.0) == 60.0 > BenchSettings(quick=True).time_limit(60.0)
    assert BenchSettings().wants("anything")


def test_names_of_questions() -> None:
    assert runner.select_questions(["memory", "step_cost", "memory"], "cpu") == ["memory", "step_cost"]
    assert "captured_cost" not in runner.select_questions(["all"], "cpu")
    assert runner.select_questions(["all"], "cuda") == ["captured_cost", "scaling", "search_cost", "search_scaling"]
    with pytest.raises(BadInput, match="did you mean 'step_cost'"):
        runner.select_questions(["step_cots"], "cpu")


def test_words_of_tables() -> None:
    assert with_error({"mean": 0.056412, "se": 0.001048}) == "0.0564\u00a0±\u00a00.0010"
    assert with_error({"mean": 1234.5, "se": 87.6}) == "1234\u00a0±\u00a088"
    missing = {
        "a": {"x": "is not installed", "y": "has no a noise", "z": "fails: E: w"},
        "b": {"x": "is not installed"},
    }
    assert missing_library_notes(missing) == ["z fails: E: w (a)", "not installed: x"]
    assert plain_text(BenchTable("t", ("net", "ms"), [("a", "1.5")], notes=["n"])) == "t\nnet   ms\na    1.5\n- n"
