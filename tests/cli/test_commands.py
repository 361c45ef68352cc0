"""Every command does what it says, in words, in JSON and in silence."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from doxa.judge import attacks
from doxa.runs import labelled_rows, open_run
from doxa.tables import read
from doxa_cli.demo import QUICK
from doxa_cli.scores import format_score

from .small import TINY, Command, flowers, write


def test_fit_shows_scores_and_what_to_do_next(doxa: Command, tables: Path) -> None:
    ended = doxa("fit", tables / "houses.csv", "--target", "price", *TINY)
    assert ended.code == 0
    assert "On 8 rows held out" in ended.out
    assert "rmse" in ended.out
    assert "doxa predict runs/houses NEW.csv --out predictions.csv" in ended.out
    assert ended.err.splitlines()[0].startswith("reading ")
    assert "read 80 rows" in ended.err
    assert "price is a quantity (regression); 72 rows to learn from, 8 held out" in ended.err
    assert "KL weight 0.1" in ended.err


def test_images_are_learned_by_a_learner_that_is_said_aloud(doxa: Command) -> None:
    ended = doxa("fit", "digits", "--net", "mlp:4", "--epochs", "1", "--draws", "4", "--hold-out", "0.2")
    assert (
        "images: assumed --learner variational --prior gaussian:1 --kl-weight geometric --lr cosine:0.002" in ended.err
    )
    assert "--posterior mean_field:scale=0.074" in ended.err, "one epoch hardly lets it grow"
    assert "--hold-out is of no use here" in ended.err
    plan = open_run("runs/digits").plan
    assert (plan.learner, plan.net, plan.kl_weight, plan.epochs) == ("variational", "mlp:4", "geometric", 1)
    assert "doxa predict" not in ended.out


def test_a_kl_weight_of_one_s_own_brings_no_other_recipe_for_images(doxa: Command) -> None:
    ended = doxa("fit", "digits", "--net", "mlp:4", "--epochs", "1", "--draws", "4", "--kl-weight", "0.1")
    assert "images: assumed --learner variational" in ended.err
    plan = open_run("runs/digits").plan
    assert (plan.kl_weight, plan.prior, plan.posterior, plan.lr) == ("0.1", None, "mean_field", None)


def test_predictions_go_to_stdout_or_to_a_file(doxa: Command, runs: Path, tables: Path) -> None:
    arguments = ("predict", runs / "houses", tables / "rows.csv", "--samples", "5")
    printed, written = doxa(*arguments), doxa(*arguments, "--out", "p.csv")
    rows = list(csv.DictReader(printed.out.splitlines()))
    assert len(rows) == 20
    assert [*rows[0]] == ["mean", "std", "lower", "upper", "epistemic", "unlike"]
    assert written.out == ""
    assert "20 rows predicted, in p.csv" in written.err
    assert Path("p.csv").read_text() == printed.out
    wide = list(csv.DictReader(doxa(*arguments, "--level", "0.99").out.splitlines()))
    assert all(float(w["upper"]) > float(r["upper"]) for w, r in zip(wide, rows, strict=True))


def test_predictions_as_json_are_the_same_numbers(doxa: Command, runs: Path, tables: Path) -> None:
    arguments = ("predict", runs / "flowers", tables / "flowers.csv", "--samples", "5")
    rows = list(csv.DictReader(doxa(*arguments).out.splitlines()))
    objects = [json.loads(line) for line in doxa(*arguments, "--json").out.splitlines()]
    assert [o["label"] for o in objects] == [r["label"] for r in rows]
    assert [o["p(iris)"] for o in objects] == pytest.approx([float(r["p(iris)"]) for r in rows], rel=1e-5)
    summary = json.loads(doxa(*arguments, "--json", "--out", "p.csv").out)
    assert summary["rows"] == 80
    assert summary["out"] == "p.csv"


def test_judge_tells_the_stored_result_or_judges_anew(doxa: Command, runs: Path, tables: Path) -> None:
    stored = json.loads(doxa("judge", runs / "houses", "--json").out)
    assert stored["scores"] == json.loads((runs / "houses" / "result.json").read_text())["scores"]
    anew = json.loads(doxa("judge", runs / "houses", tables / "rows.csv", "--samples", "6", "--json").out)
    assert anew["data"]["rows"] == 20
    assert anew["data"]["name"] == "rows.csv"
    assert anew["samples"] == 6
    output = doxa("judge", runs / "houses").out
    assert all(name in output for name in stored["scores"])


def test_judge_on_a_named_set_finds_its_held_out_rows_again(doxa: Command, runs: Path) -> None:
    stored = json.loads(doxa("judge", runs / "digits", "--json").out)
    again = json.loads(doxa("judge", runs / "digits", "--samples", "8", "--json").out)
    assert again["scores"]["nll"]["value"] == pytest.approx(stored["scores"]["nll"]["value"], rel=1e-5)
    named = json.loads(doxa("judge", runs / "digits", "digits", "--samples", "8", "--json").out)
    assert named["scores"] == again["scores"]


def test_held_out_rows_of_a_named_table_are_found_again(doxa: Command) -> None:
    assert doxa("fit", "two_moons", "--hold-out", "0.3", *TINY, "-q").out == "runs/two_moons\n"
    stored = json.loads(doxa("judge", "runs/two_moons", "--json").out)
    again = json.loads(doxa("judge", "runs/two_moons", "--samples", "8", "--json").out)
    assert again["scores"]["error"]["value"] == stored["scores"]["error"]["value"]


def test_a_shift_is_noticed_by_a_score(doxa: Command, runs: Path, tables: Path) -> None:
    far = write(Path("far.csv"), {"x": [50.0, -60.0, 70.0], "kind": ["iris", "rose", "iris"]})
    result = json.loads(doxa("judge", runs / "flowers", tables / "flowers.csv", "--shift", far, "--json").out)
    assert 0 <= result["scores"]["auroc_entropy"]["value"] <= 1
    written = doxa("judge", runs / "flowers", tables / "flowers.csv", "--shift", far, "--out", "j.json", "--json")
    assert json.loads(written.out)["scores"]["auroc_entropy"] == {
        **result["scores"]["auroc_entropy"],
        **{"over": "draws", "count": 8},
    }
    assert "outside" in json.loads(Path("j.json").read_text())["entropy"]
    same = json.loads(doxa("judge", runs / "digits", "--shift", "digits", "--samples", "4", "--json").out)
    assert same["scores"]["auroc_entropy"]["value"] == pytest.approx(0.5, abs=0.01)


def test_a_judgement_can_be_written_and_reported(doxa: Command, runs: Path, tables: Path) -> None:
    assert doxa("judge", runs / "houses", tables / "rows.csv", "--samples", "4", "--out", "j.json", "-q").code == 0
    assert doxa("report", runs / "houses", "j.json", "--out", "r.html").code == 0
    assert "rows.csv" in Path("r.html").read_text()


def test_report_compares_runs_by_the_names_their_folders_have(doxa: Command, runs: Path) -> None:
    shutil.copytree(runs / "houses", "other-name")
    ended = doxa("report", runs / "houses", "other-name", runs / "flowers", "--out", "page.html")
    assert ended.code == 0
    assert "other-name" in ended.out
    assert ended.out.rstrip().endswith("page.html")
    page = Path("page.html").read_text()
    assert all(name in page for name in ("houses", "other-name", "flowers"))
    # A page of our own is written anew, unasked.
    result = json.loads(doxa("report", runs / "houses", "--out", "page.html", "--json").out)
    assert result["page"] == "page.html"
    assert [r["name"] for r in result["results"]] == ["houses"]


def test_attack_lowers_the_skill_with_the_radius(doxa: Command, runs: Path, tables: Path) -> None:
    arguments = ("attack", runs / "flowers", tables / "flowers.csv", "--samples", "5")
    result = json.loads(doxa(*arguments, "--radius", "0", "--radius", "0.5", "--radius", "2", "--json").out)
    clean, weak, strong = result["attack"]["nll"]
    assert clean < weak < strong
    assert "standard deviations" in result["unit"]
    ended = doxa("attack", runs / "digits", "--rows", "30", "--samples", "3")
    assert "FGSM on 30 rows of digits; pixels run from 0 to 1" in ended.out
    assert len(ended.out.splitlines()) == 3 + 5


def test_an_attack_is_named_by_an_option(
    doxa: Command, runs: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stand_still(belief: Any, x: Any, y: Any, radius: float, **_: Any) -> Any:
        return x

    monkeypatch.setattr(attacks, "TABLE", dict(attacks.TABLE))
    attacks.register("stand_still", stand_still)
    arguments = ("attack", runs / "flowers", tables / "flowers.csv", "--samples", "3", "--radius", "0", "--radius", "2")
    assert doxa(*arguments, "--json").out == doxa(*arguments, "--attack", "fgsm", "--json").out
    clean, attacked = json.loads(doxa(*arguments, "--attack", "stand_still", "--json").out)["attack"]["nll"]
    assert clean == attacked
    assert "STAND_STILL on " in doxa(*arguments, "--attack", "stand_still").out
    ended = doxa(*arguments, "--attack", "fgms")
    assert ended.code == 1
    assert "there is no attack 'fgms'; did you mean 'fgsm'?" in ended.err
    assert "fgsm" in doxa("attack", "--help").out


def test_prune_writes_a_run_that_is_smaller_and_judged(doxa: Command, runs: Path) -> None:
    ended = doxa("prune", runs / "digits", "--fraction", "0.5", "--out", "small", "--samples", "4", "--json")
    result = json.loads(ended.out)
    assert result["weights"]["after"] < 0.6 * result["weights"]["before"]
    assert {*result["scores"]} == {"before", "after"}
    small = open_run("small")
    assert small.spec["pruned"]["fraction"] == 0.5
    weights = small.belief.posterior.relevance
    assert int((weights > 0).sum()) == result["weights"]["after"]
    assert small.result()["name"] == "small"
    stored = json.loads(doxa("judge", "small", "--json").out)["scores"]
    assert stored["error"]["value"] == pytest.approx(result["scores"]["after"]["error"])


def test_prune_of_a_table_run_says_what_it_needs_to_tell_the_cost(doxa: Command, runs: Path, tables: Path) -> None:
    ended = doxa("prune", runs / "houses", "--out", "a")
    assert ended.code == 0
    assert "name a TABLE" in ended.err
    assert "was never judged" in doxa("judge", "a").message
    assert "`doxa judge a TABLE` does it" in doxa("report", "a").message
    judged = doxa("judge", "a", tables / "rows.csv")
    assert judged.code == 0
    assert "kept in a/result.json" in judged.err
    assert doxa("report", "a").code == 0
    stored = json.loads(Path("a/result.json").read_text())
    assert stored["settings"]["pruned"] == 0.95
    assert stored["data"]["rows"] == 20
    assert "kept in" not in doxa("judge", "a", tables / "houses.csv").err
    assert json.loads(Path("a/result.json").read_text()) == stored
    assert doxa("predict", "a", tables / "rows.csv", "-q").out.startswith("mean,")
    ended = doxa("prune", runs / "houses", tables / "rows.csv", "--out", "b", "--per-layer")
    assert "before" in ended.out
    assert json.loads(doxa("judge", "b", "--json").out)["data"]["name"] == "rows.csv"


def test_batch_norm_is_renewed_after_pruning(doxa: Command, tables: Path) -> None:
    arguments = ("--net", "mlp:8,batch_norm=true", "--learner", "variational", "--epochs", "2", "--draws", "4")
    fitted = doxa("fit", tables / "houses.csv", "--target", "price", "--out", "r", *arguments)
    pruned = doxa("prune", "r", tables / "rows.csv", "--out", "s", "--samples", "4")
    for ended in (fitted, pruned):
        assert ended.code == 0
        assert "BatchNorm" not in ended.err
    before, after = (open_run(name).belief.buffers[0] for name in ("r", "s"))
    assert any(not before[k].equal(after[k]) for k in before if "running_mean" in k)


def test_version(doxa: Command) -> None:
    result = json.loads(doxa("version", "--json").out)
    assert {"doxa", "torch", "python", "compiled_kernels", "cuda"} <= {*result}
    assert result["doxa"] in doxa("version").out
    assert doxa("--version").out.strip() == result["doxa"]


def test_data_sets_by_name(doxa: Command) -> None:
    assert "two_moons" in doxa("data", "list").out
    cards = json.loads(doxa("data", "list", "--json").out)
    assert {card["name"] for card in cards} >= {"mnist", "digits"}
    assert "licence" in doxa("data", "show", "mnist").out
    assert len(doxa("data", "path", "mnist").out.splitlines()) == 4
    ended = doxa("data", "get", "digits")
    assert ended.code == 0
    assert ended.out == ""
    assert ended.err == "digits needs no files\n"
    assert json.loads(doxa("data", "path", "digits", "--json").out) == {"name": "digits", "paths": []}


def test_the_demo_is_written_and_told(doxa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from doxa.demo import run

    demo_arguments = {}

    def quickly(folder: Path, say: Any, seeds: range, epochs: int | None) -> Any:
        demo_arguments.update(seeds=len(seeds), epochs=epochs)
        return run(folder, say, seeds, 1, cores=1)

    monkeypatch.setattr("doxa.demo.run", quickly)
    ended = doxa("demo", "--quick", "--out", "d")
    assert ended.code == 0
    assert "belief" in ended.out
    assert ended.out.rstrip().endswith("d/report.html")
    assert Path("d/report.html").exists()
    assert demo_arguments == {"seeds": 1, "epochs": QUICK}


@pytest.mark.parametrize("command", ["fit", "predict", "judge", "report", "attack", "prune"])
def test_quiet_says_nothing_beside_the_result(command: str, doxa: Command, runs: Path, tables: Path) -> None:
    table, run = tables / "flowers.csv", runs / "flowers"
    arguments = {
        "fit": (table, "--target", "kind", "--out", "r", *TINY),
        "predict": (run, table, "--out", "p.csv"),
        "judge": (run,),
        "report": (run,),
        "attack": (run, table, "--radius", "0"),
        "prune": (run, "--out", "s"),
    }[command]
    ended = doxa(command, *arguments, "--quiet")
    assert ended.code == 0
    assert ended.err == ""
    assert {"fit": "r\n", "predict": "", "report": "report.html\n", "prune": "s\n"}.get(command, ended.out) == ended.out


@pytest.mark.parametrize("command", ["fit", "judge", "report", "attack", "prune"])
def test_json_is_all_there_is_on_stdout(command: str, doxa: Command, runs: Path, tables: Path) -> None:
    table, run = tables / "flowers.csv", runs / "flowers"
    arguments = {
        "fit": (table, "--target", "kind", "--out", "r", *TINY),
        "judge": (run, table, "--samples", "4"),
        "report": (run,),
        "attack": (run, table, "--radius", "0"),
        "prune": (run, table, "--out", "s"),
    }[command]
    ended = doxa(command, *arguments, "--json")
    assert ended.code == 0
    assert isinstance(json.loads(ended.out), dict)


def test_a_table_without_enough_to_learn_from_can_still_be_judged_on(doxa: Command, runs: Path) -> None:
    path = write(Path("one.csv"), {"x": [0.5], "kind": ["rose"]})
    assert json.loads(doxa("judge", runs / "flowers", path, "--json").out)["data"]["rows"] == 1
    x, y = labelled_rows(open_run(runs / "flowers"), read(path))
    assert x.shape == (1, 1)
    assert y.tolist() == [1]
    assert flowers()["kind"][0] in ("iris", "rose")


def test_two_classes_by_one_output_go_through_every_command(doxa: Command, tables: Path) -> None:
    arguments = (
        "--learner",
        "variational",
        "--likelihood",
        "bernoulli",
        "--net",
        "mlp:4",
        "--epochs",
        "3",
        "--draws",
        "4",
    )
    rows = tables / "flowers.csv"
    assert doxa("fit", rows, "--target", "kind", "--out", "r", *arguments, "-q").code == 0
    assert doxa("predict", "r", rows, "-q").out.startswith("label,entropy,mutual_information,p(iris),p(rose),unlike")
    for command in (
        ("judge", "r"),
        ("judge", "r", rows, "--out", "r.json"),
        ("attack", "r", rows),
        ("prune", "r", rows, "--fraction", "0.5"),
        ("report", "r", "r-pruned-50", "r.json"),
    ):
        ended = doxa(*command, "--json")
        assert ended.code == 0
        json.loads(ended.out)


def test_what_is_assumed_of_a_table_is_said(doxa: Command) -> None:
    lines = [f"{i};{i},5;2020-01-{i % 28 + 1:02d};{i % 9},25;0{i % 2}" for i in range(60)]
    Path("t.csv").write_text("\n;a;when;y;zip\n" + "\n".join(lines))
    ended = doxa("fit", "t.csv", "--target", "y", "--out", "r", *TINY)
    assert ended.code == 0
    for expected_text in (
        "column 1 has no name and numbers the rows: it is left out",
        "columns 'a', 'y': written with decimal commas: 1,5 is read as 1.5",
        "column 'when': dates: counted in days since 1970",
        "column 'zip': digits with leading zeros: taken as words",
    ):
        assert expected_text in ended.err
    again = doxa("predict", "r", "t.csv")
    assert again.code == 0
    assert "numbers the rows: it is left out" in again.err
    assert "decimal commas" not in again.err
    Path("new.csv").write_text("a,when,zip\n3.5,2020-01-04,01\n")
    new, old = (doxa("predict", "r", name, "-q").out.splitlines() for name in ("new.csv", "t.csv"))
    assert float(new[1].split(",")[0]) == pytest.approx(float(old[4].split(",")[0]), rel=1e-5)


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (21525.3, 284.1, ("21,525", "284")),
        (0.5, 0.012, ("0.500", "0.012")),
        (1.234567e30, 2.5e27, ("1.2346e+30", "2.5e+27")),
        (2.5e27, 1.2e30, ("2.5e+27", "1.2e+30")),
        (1.234e-9, 2.5e-11, ("1.234e-09", "2.5e-11")),
        (0.0, 0.0, ("0.0", "")),
        (3.0, 1e-9, ("3.000000", "0.000000")),
    ],
)
def test_scores_are_as_long_as_they_have_meaning(value: float, error: float, expected: tuple[str, str]) -> None:
    assert format_score(value, error) == expected
