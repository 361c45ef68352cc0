"""What help and completion say without importing the library is what the library has."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from doxa import data, kl_weights, learners, likelihoods, nets, noise, posteriors, priors, rates
from doxa.auto import KL_WEIGHTS, RATE, describe_weight
from doxa.judge import attacks
from doxa.runs import Plan, load_training_data
from doxa.runs.image_recipe import RECIPE, WIDE_NET
from doxa.runs.learn import EPOCHS, ROWS, STEPS
from doxa.runs.plan import ACTIVATIONS, OBJECTIVES, OPTIMISERS, PERTURBATIONS, PRECISIONS
from doxa.search import functions
from doxa_cli.app import app
from doxa_cli.setting_options import SETTINGS
from doxa_cli.settings import DATA_TYPES, merge_settings
from doxa_settings import names
from doxa_settings.record import DataSettings
from doxa_settings.setting import type_name

from .small import Command

COMMANDS = ("demo", "fit", "search", "predict", "judge", "report", "attack", "prune", "bench", "version", "data")


def program() -> Any:
    return typer.main.get_command(app)


def options() -> dict[str, Any]:
    """The options of `doxa fit` by the names of their settings."""
    return {parameter.name: parameter for parameter in program().commands["fit"].params}


@pytest.mark.parametrize(
    ("static", "table"),
    [
        (names.ACTIVATIONS, ACTIVATIONS),
        (names.PRIORS, priors.TABLE),
        (names.NOISES, noise.TABLE),
        (names.LIKELIHOODS, likelihoods.TABLE),
        (names.KL_WEIGHTS, kl_weights.TABLE),
        (names.RATES, rates.TABLE),
        (names.OPTIMISERS, OPTIMISERS),
        (names.ATTACKS, attacks.TABLE),
        (names.PRECISIONS, PRECISIONS),
        (names.PERTURBATIONS, PERTURBATIONS),
        (names.OBJECTIVES, OBJECTIVES),
        (names.FUNCTIONS, functions.TABLE),
        (names.DATA, data.TABLE),
    ],
)
def test_the_names_are_those_of_the_rooms(static: tuple[str, ...], table: dict[str, Any]) -> None:
    assert static == tuple(table)


def test_every_learner_and_posterior_can_be_reached() -> None:
    # An ensemble is a learner of any kind with --members; auto is a choice among variational ones; search has a room.
    assert ("auto", *(name for name in learners.TABLE if name != "ensemble"), "search") == names.LEARNERS
    assert {*names.POSTERIORS} <= {*posteriors.TABLE}
    assert {*names.NETS} == {*nets.TABLE} - {"rescaled"}  # which is put around the net of a regression


def test_a_member_is_a_line_of_its_room(tmp_path: Path) -> None:
    room = tmp_path / "__init__.py"
    room.write_text(
        "from __future__ import annotations\n"
        "from collections.abc import Callable\n"
        "from functools import partial\n"
        "from doxa import registry\n"
        "from doxa.priors.wide import wide as wide\n"
        "from doxa.priors.narrow import Narrow as narrow, Shape, _hidden\n"
        "from doxa.priors.heavy import heavy\n"
        "from doxa.weights.layout import bind_prior\n"
        "TABLE = registry.members(globals())\n"
    )
    assert names.read_members(room, "priors") == ("heavy", "narrow", "wide")
    assert names.read_members(tmp_path / "nothing.py", "priors") == ()


@pytest.mark.parametrize("source", [b"from doxa.priors.wide import (\n", b"\xff\xfe", b"a\0b"])
def test_a_room_that_cannot_be_parsed_has_no_names_in_help(source: bytes, tmp_path: Path) -> None:
    room = tmp_path / "__init__.py"
    room.write_bytes(source)
    assert names.read_members(room, "priors") == ()


def test_help_outlives_rooms_that_cannot_be_parsed(tmp_path: Path) -> None:
    sources = Path(names.__file__).parents[1]
    for package in ("doxa_cli", "doxa_settings"):
        shutil.copytree(sources / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for room in (
        "",
        "priors",
        "learners",
        "noise",
        "likelihoods",
        "kl_weights",
        "rates",
        "optimisers",
        "judge/attacks",
    ):
        (tmp_path / "doxa" / room).mkdir(parents=True, exist_ok=True)
        (tmp_path / "doxa" / room / "__init__.py").write_text("from doxa import (\n")
    for arguments in (["--help"], ["fit", "--help"], ["attack", "--help"]):
        command = [sys.executable, "-c", SCRIPT, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stderr)["code"] == 0
        assert "scale_mixture" not in ended.stdout


@pytest.mark.parametrize(
    ("setting", "known"),
    [
        ("net", (*names.NETS, *ACTIVATIONS)),
        ("prior", priors.TABLE),
        ("noise", noise.TABLE),
        ("likelihood", likelihoods.TABLE),
        ("kl_weight", kl_weights.TABLE),
        ("lr", rates.TABLE),
        ("optimiser", OPTIMISERS),
        ("autocast", PRECISIONS),
        ("learner", ("auto", *(name for name in learners.TABLE if name != "ensemble"), "search")),
        ("perturbation", PERTURBATIONS),
        ("objective", OBJECTIVES),
        ("posterior", names.POSTERIORS),
    ],
)
def test_the_help_of_a_knob_names_every_member_of_its_room(setting: str, known: Any) -> None:
    for name in known:
        assert name in options()[setting].help


def test_every_knob_of_a_plan_is_an_option_and_tells_its_default() -> None:
    for field in fields(Plan):
        option = options()[field.name]
        assert f"--{field.name.replace('_', '-')}" in option.opts
        if field.default not in (None, False):
            assert option.show_default.split(";")[0] == str(field.default)
    for name in {*DATA_TYPES} - {"source"}:
        assert f"--{name.replace('_', '-')}" in options()[name].opts
    default_texts = {name: options()[name].show_default for name in ("kl_weight", "lr", "epochs", "batch_size")}
    assert default_texts["kl_weight"].endswith(",".join(map(describe_weight, KL_WEIGHTS)))
    assert default_texts["lr"].endswith(f"{RATE:g}")
    assert default_texts["epochs"].startswith(f"{EPOCHS}, or {STEPS} steps;")
    assert default_texts["batch_size"].startswith(f"{ROWS};")
    for name, value in {**RECIPE, "net": WIDE_NET}.items():
        assert f"images: {value}" in options()[name].show_default


def test_the_rows_are_gathered_by_the_defaults_that_help_tells() -> None:
    parameters = inspect.signature(load_training_data).parameters
    for field in fields(DataSettings):
        if field.default is not None:
            assert parameters[field.name].default == field.default


def test_options_settings_and_completion_are_made_from_the_record() -> None:
    parameters = options()
    command_options = {"resume", "config", "assignments", "as_json", "quiet"}
    assert (
        {*SETTINGS}
        == {field.name for field in (*fields(DataSettings), *fields(Plan))}
        == {*parameters} - command_options
    )
    for name, (field, setting) in SETTINGS.items():
        assert parameters[name].help == setting.help
        assert parameters[name].default is None  # so that what was given can be told from what was not
        word = {"bool": "true", "int": "1", "float": "1"}.get(type_name(field), "a")
        assert merge_settings(None, [f"{name}={word}"], {}).keys() == {name}
    choices_by_name = {name: setting.choices for name, (_, setting) in SETTINGS.items() if setting.choices}
    assert {"source", "prior", "lr", "optimiser"} <= {*choices_by_name}
    for name, choices in choices_by_name.items():
        prefix, context = choices[0][:2], typer.Context(program())
        completed = [item.value for item in parameters[name].shell_complete(context, prefix)]
        assert completed == [word for word in choices if word.startswith(prefix)]


SCRIPT = """
import json, sys, time
start = time.perf_counter()
from doxa_cli.app import main
code = main(sys.argv[1:])
print(json.dumps({"modules": sorted({name.partition(".")[0] for name in sys.modules}), "code": code,
                  "seconds": time.perf_counter() - start}), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["attack", "--help"], ["bench"], ["--version"]])
def test_help_imports_typer_and_rich_alone(arguments: list[str]) -> None:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    result = json.loads(ended.stderr)
    print(f"doxa {' '.join(arguments)}: {result['seconds']:.2f} s")
    assert result["code"] == 0
    assert ended.stdout
    assert not {"doxa", "torch", "numpy", "sklearn", "matplotlib", "safetensors"} & {*result["modules"]}


def test_every_command_has_help(doxa: Command) -> None:
    assert all(command in doxa("--help").out for command in COMMANDS)
    assert doxa().out == doxa("--help").out
    for command in COMMANDS:
        ended = doxa(command, "--help")
        assert ended.code == 0
        assert f"doxa {command}" in ended.out
    assert "list" in doxa("data").out


def test_the_shell_can_complete_commands_options_and_names() -> None:
    def completed(line: str) -> str:
        asked = {"_DOXA_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        command = [sys.executable, "-m", "doxa_cli"]
        return subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True).stdout

    assert "fit" in completed("doxa f").split()
    assert "--kl-weight" in completed("doxa fit --kl").split()
    assert completed("doxa fit --prior sc").split() == ["scale_mixture"]
    assert completed("doxa attack --attack f").split() == ["fgsm"]
    assert completed("doxa data get fash").split() == ["fashion_mnist"]
