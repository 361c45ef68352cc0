"""Words of a run that were sealed, but make no sense: the field is named, and no memory is taken on their word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from doxa import nets
from doxa.errors import BadInput, BrokenFile
from doxa.runs import Plan, learn, load_training_data, open_run, predict_table
from doxa.runs.folder import open_whole_run, read_spec, write_spec
from doxa.runs.manifest import read_manifest, take_stock, write_manifest
from doxa.storage.json_text import to_sealed_bytes

POINT = Plan(net="mlp:2", learner="point", epochs=1, draws=2)


def rows() -> dict[str, Any]:
    x = np.linspace(-2, 2, 40)
    return {"x": x, "y": 3 * x, "z": ["a", "b"] * 20}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "r"
    return learn(load_training_data(rows(), "y"), POINT, folder, progress=False).folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "r")


def reseal(run: Path, path: str, value: Any) -> None:
    """Set one field of run.json, and seal the run as if Doxa had written it."""
    spec = read_spec(run)
    *parents, name = path.split(".")
    place: Any = spec
    for parent in parents:
        place = place[int(parent) if parent.isdigit() else parent]
    place[name] = value
    write_spec(run, spec)
    write_manifest(run, take_stock(run, None))


FIELDS = [
    ("status", "done"),
    ("status", 1),
    ("data", ["x"]),
    ("rows", "40"),
    ("rows", -1),
    ("held_out", 1.5),
    ("task", "poetry"),
    ("target", None),
    ("classes", "ab"),
    ("classes", [1, 2]),
    ("classes", ["a", "b"]),  # of a regression
    ("about", []),
    ("shape", [0]),
    ("shape", [-3]),
    ("shape", [True]),
    ("shape", "3"),
    ("shape", [10**12]),
    ("shape", [2**20, 2**20]),
    ("shape", [2]),  # its preparation makes three columns
    ("outputs", 0),
    ("outputs", 10**12),
    ("units", [0.0]),
    ("units", [0.0, 0.0]),
    ("units", [0.0, -1.0]),
    ("units", ["a", 1.0]),
    ("units", [[0.0, 1.0], 1.0]),
    ("plan", []),
    ("plan.net", "mlp:2\0"),
    ("plan.net", "mlp:" + "2," * 50_000),
    ("preparation", []),
    ("preparation", {"steps": 3, "dropped": {}}),
    ("preparation.steps.0.kind", "recipe"),
    ("preparation.steps.0.kind", ["scaled"]),
    ("preparation.steps.0.scale", 0),
    ("preparation.steps.0.scale", "1"),
    ("preparation.steps.0.indicated", 1),
    ("preparation.steps.0.name", 3),
    ("preparation.steps.0.more", 3),
    ("preparation.steps.1.levels", "ab"),
    ("preparation.steps.1.gaps", None),
    ("preparation.dropped", {"x": 3}),
    ("again", {"source": "mnist"}),
    ("again", "mnist"),
    ("levels", [[0.0, 1.0]]),
    ("levels", [[0.0, 1.0], [0.0]]),
    ("levels", [[0.0], [7.0]]),
    ("noise", -1.0),
    ("trials", {}),
    ("pruned", 0.5),
]


@pytest.mark.parametrize(("path", "value"), FIELDS, ids=[f"{path}-{k}" for k, (path, _) in enumerate(FIELDS)])
def test_a_field_that_makes_no_sense_is_named(path: str, value: Any, run: Path) -> None:
    reseal(run, path, value)
    first, _, _ = path.partition(".")
    with pytest.raises(BrokenFile, match=rf"run\.json makes no sense: its field '{first}[^']*'|'shape'") as raised:
        open_run(run)
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize("name", ["status", "task", "classes", "shape", "outputs", "units", "plan", "preparation"])
def test_a_field_that_is_missing_is_named(name: str, run: Path) -> None:
    spec = read_spec(run)
    del spec[name]
    write_spec(run, spec)
    write_manifest(run, take_stock(run, None))
    with pytest.raises(BrokenFile, match=f"it has no field '{name}'"):
        open_run(run)


@pytest.mark.parametrize(
    "net",
    [
        "mlp:1000000000000",  # which no machine could hold
        "mlp:1000000000000,1000000000000",
        "mlp:99999999999999999999999999",
        "mlp:" + "1," * 2000,
        "mlp:" + "(" * 4000 + ")" * 4000,
        "mlp:0",
        "mlp:x",
        "mlp:2,activation=sloth",
        "lenet5",
        "",
        "poem",
    ],
    ids=range(11),
)
def test_a_net_that_does_not_fit_the_belief_is_refused_before_memory_is_taken(net: str, run: Path) -> None:
    reseal(run, "plan.net", net)
    with pytest.raises((BrokenFile, BadInput), match=r"run\.json"):
        open_run(run)


@pytest.mark.parametrize(("name", "value"), [("epoch", 3), ("epochs", "many"), ("seed", 10**30), ("net", None)])
def test_a_plan_that_makes_no_sense_is_refused(name: str, value: Any, run: Path) -> None:
    reseal(run, f"plan.{name}", value)
    with pytest.raises((BrokenFile, BadInput), match=rf"run\.json.*{name}"):
        open_run(run)


RAW = {
    "deep": b"[" * 100_000,
    "deep table": b'{"a":' * 100_000,
    "deep but closed": b'{"kind": "doxa run", "version": 1, "about": ' + b"[" * 500 + b"]" * 500 + b"}",
    "digits": b'{"kind": "doxa run", "version": 1, "rows": ' + b"9" * 5000 + b"}",
    "digits of a version": b'{"kind": "doxa run", "version": ' + b"9" * 5000 + b"}",
    "infinite": b'{"kind": "doxa run", "version": 1, "rows": 1e400}',
    "not a number": b'{"kind": "doxa run", "version": 1, "rows": NaN}',
    "version": b'{"kind": "doxa run", "version": -1}',
    "no version": b'{"kind": "doxa run"}',
    "half a letter": b'{"kind": "doxa run", "version": 1, "data": "\\ud800"}',
    "binary": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("case", RAW)
@pytest.mark.parametrize("name", ["run.json", "manifest.json", "result.json"])
def test_json_of_any_kind_is_refused_in_words(case: str, name: str, run: Path) -> None:
    (run / name).write_bytes(RAW[case].replace(b"doxa run", {"run.json": b"doxa run"}.get(name, b"doxa result")))
    with pytest.raises(BrokenFile, match=name):
        open_whole_run(run)


def test_a_manifest_that_makes_no_sense_is_refused(run: Path) -> None:
    content = json.loads((run / "manifest.json").read_text())
    for change in (
        {"kind": "menu"},
        {"version": "one"},
        {"files": []},
        {"files": {"run.json": 3}},
        {"files": {"../run.json": content["files"]["run.json"]}},
        {"files": {"run.json": [{"size": "1", "sha256": ""}]}},
        {"checkpoints": {"a": None}},
    ):
        (run / "manifest.json").write_bytes(to_sealed_bytes({**content, **change}))
        with pytest.raises(BrokenFile, match=r"manifest\.json"):
            read_manifest(run)


def test_a_name_that_no_folder_has_is_refused() -> None:
    with pytest.raises(BadInput, match="NUL"):
        open_run("runs/\0")


def test_a_table_of_another_run_is_refused(run: Path, tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 40)
    other = learn(load_training_data({"x": x, "y": 3 * x}, "y"), POINT, tmp_path / "other", progress=False).folder
    shutil.copy(other / "table.doxa", run)
    write_manifest(run, take_stock(run, None))
    with pytest.raises(BrokenFile, match=r"table\.doxa does not fit the 3 columns"):
        open_run(run)


def test_a_net_of_ones_own_opens_though_it_cannot_be_built_without_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own(shape: tuple[int, ...], outputs: int) -> nn.Module:
        net = nn.Linear(shape[0], outputs)
        with torch.no_grad():
            net.weight *= 1.0 / float(net.weight.norm().item())
        return net

    monkeypatch.setitem(nets.TABLE, "own", own)
    training_data = load_training_data(rows(), "y")
    plan = Plan(net="own", learner="point", epochs=1, draws=2)
    run = learn(training_data, plan, tmp_path / "r", progress=False)
    new = {"x": [1.0], "z": ["a"]}
    assert predict_table(open_run(run.folder), new)["mean"] == predict_table(run, new)["mean"]
