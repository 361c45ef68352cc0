"""Settings: defaults, then the file, then --set, then options; nothing misspelt goes unnoticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from doxa.errors import BadInput
from doxa.runs import Plan
from doxa_cli.settings import merge_settings

from .small import Command


def test_the_later_source_counts() -> None:
    Path("a.toml").write_text('net = "mlp:5"\nepochs = 7\nsamples = 3\nkl-weight = 0.5\n')
    result = merge_settings(Path("a.toml"), ["epochs=8", "samples=4"], {"epochs": None, "samples": 5, "drop": []})
    assert result == {"net": "mlp:5", "epochs": 8, "samples": 5, "kl_weight": 0.5}
    plan = Plan.from_settings(result)
    assert (plan.net, plan.epochs, plan.samples, plan.kl_weight) == ("mlp:5", 8, 5, "0.5")
    assert plan.noise == Plan().noise


@pytest.mark.parametrize(
    ("assignment", "name", "value"),
    [
        ("net=mlp:400,400", "net", "mlp:400,400"),
        ('net="mlp:8"', "net", "mlp:8"),
        ("kl_weight=1e-3", "kl_weight", "1e-3"),
        ("antithetic=true", "antithetic", True),
        ("epochs=none", "epochs", None),
        ("target=2024", "target", "2024"),
        ("target=a=b", "target", "a=b"),
        ("drop=town", "drop", ["town"]),
        ('drop=["town", "age"]', "drop", ["town", "age"]),
        ("hold-out=1", "hold_out", 1.0),
    ],
)
def test_what_is_assigned_is_what_was_meant(assignment: str, name: str, value: Any) -> None:
    assert merge_settings(None, [assignment], {}) == {name: value}


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ("epoch = 3", "no setting 'epoch' in a.toml; did you mean 'epochs'"),
        ("epochs = ", "a.toml is not TOML"),
        ("[plan]\nepochs = 3", "no setting 'plan'"),
        ("drop = 3", "drop must be a list of names"),
        ("keep_constant = 'yes'", "keep_constant must be true or false"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(text: str, expected_text: str) -> None:
    Path("a.toml").write_text(text)
    with pytest.raises(BadInput, match=expected_text.replace("[", r"\[")):
        merge_settings(Path("a.toml"), [], {})


def test_a_whole_run_from_one_file(doxa: Command, tables: Path) -> None:
    Path("a.toml").write_text(
        f'source = "{tables / "houses.csv"}"\ntarget = "price"\nout = "here"\nlearner = "variational"\n'
        'net = "mlp:4"\nprior = "laplace:0.5"\nnoise = "flipout"\nepochs = 2\ndraws = 4\nhold_out = 0.25\n'
    )
    ended = doxa("fit", "--config", "a.toml", "--set", "noise=shared", "--set", "epochs=3", "--epochs", "1", "--json")
    assert ended.code == 0
    result = json.loads(ended.out)
    assert result["run"] == "here"
    assert result["held_out"] == 20
    plan = result["plan"]
    assert [plan[k] for k in ("net", "prior", "noise", "epochs")] == ["mlp:4", "laplace:0.5", "shared", 1]
    assert Path("here/belief.doxa").exists()


def test_schedules_priors_and_posteriors_take_arguments(doxa: Command, tables: Path) -> None:
    arguments = (
        "--net",
        "mlp:4,activation=tanh",
        "--learner",
        "variational",
        "--epochs",
        "2",
        "--draws",
        "4",
        "--quiet",
    )
    knobs = (
        *("--prior", "scale_mixture:0.25,1,0.01", "--posterior", "mean_field:rho=(-5,-4)", "--samples", "2"),
        *("--kl-weight", "annealed:1,of=tempered(0.5)", "--lr", "step:0.01,1,factor=0.1", "--antithetic"),
    )
    assert doxa("fit", tables / "houses.csv", "--target", "price", "--out", "r", *arguments, *knobs).code == 0
    from doxa.runs import open_run

    saved_run = open_run("r")
    expected_text = json.dumps(saved_run.belief.record.settings)
    for word in ("ScaleMixture", "0.25", "[-5, -4]", "Annealed", "Tempered", "0.5", "Step", "0.1"):
        assert word in expected_text
    assert "Tanh" in str(saved_run.belief.net)
