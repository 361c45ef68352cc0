"""Files that older code wrote: they load, say the same and are gone on with to the same end, to the bit.

Where torch, its threads, the kernels or the processor are others than those that wrote them, numbers agree to 1e-4
of the largest of them instead, and the tests' names say so.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import before_engine as before
import doxa
from before_engine import BELIEFS, EVERY, FOLDER, OUTCOMES, OUTPUTS, PLANS, PREDICTIONS
from doxa.runs import open_run

WRITTEN = {k: v for k, v in json.loads((FOLDER / "facts.json").read_text()).items() if k != "commit"}
# How near is near enough: not at all apart on a machine like the one that wrote the files.
APART = 0.0 if before.facts() == WRITTEN else 1e-4
HOW = "bits" if APART == 0 else f"to-{APART}"
# Checkpoints of these may be refused in words; those of all others are promised to be gone on with.
LENIENT = [name for name in EVERY if name.startswith(("games/", "fits/search"))]

pytestmark = pytest.mark.filterwarnings("ignore:.*bits may differ")
every = pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}-{HOW}") for name in EVERY])


def require_same(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        actual = tensors[name]
        assert (actual.shape, actual.dtype) == (tensor.shape, tensor.dtype), name
        if APART and tensor.is_floating_point():
            assert float((actual - tensor).abs().max()) <= APART * float(tensor.abs().max()), name
        else:
            assert torch.equal(actual.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8)), name


def require_same_history(rows: Sequence[Mapping[str, float]], expected: Sequence[Mapping[str, float]]) -> None:
    assert [row.keys() for row in rows] == [row.keys() for row in expected]
    for actual, row in zip(rows, expected, strict=True):
        assert dict(actual) == (pytest.approx(dict(row), rel=10 * APART, abs=APART) if APART else dict(row))


def require_same_end(name: str, results: list[Any], folder: Path) -> None:
    """What a run came to, in memory and in the files of its folder, is what older code came to."""
    before.save_outcomes(results, folder)
    end, net = FOLDER / name / "end", EVERY[name].net()
    paths = sorted(path.relative_to(end) for path in end.rglob(BELIEFS))
    assert sorted(path.relative_to(folder) for path in folder.rglob(BELIEFS)) == paths
    for path, result in zip(paths, results, strict=True):
        require_same(load_file(folder / path), load_file(end / path))
        belief = result if isinstance(result, doxa.Belief) else result.belief
        require_same({"": before.outputs_of(belief)}, {"": load_file(end / OUTPUTS)[path.as_posix()]})
        require_same_history(belief.record.history, doxa.load(end / path, net).record.history)
    if (end / OUTCOMES).exists():
        require_same(load_file(folder / OUTCOMES), load_file(end / OUTCOMES))


@every
def test_beliefs_load_and_predict_the_same(name: str) -> None:
    end = FOLDER / name / "end"
    for path, outputs in load_file(end / OUTPUTS).items():
        require_same({path: before.outputs_of(doxa.load(end / path, EVERY[name].net()))}, {path: outputs})


@every
def test_the_same_call_comes_to_the_same_end(name: str, tmp_path: Path) -> None:
    require_same_end(name, EVERY[name].run(checkpoint=tmp_path), tmp_path)


@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}-{HOW}") for name in EVERY if name not in LENIENT])
def test_a_run_broken_off_is_gone_on_with_to_the_same_end(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER / name / "cut", tmp_path / "run"))
    require_same_end(name, EVERY[name].run(checkpoint=folder, resume=True), folder)


@pytest.mark.parametrize("name", LENIENT)
def test_a_game_or_search_broken_off_is_gone_on_with_or_refused_in_words(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER / name / "cut", tmp_path / "run"))
    saved = (folder / "checkpoint.doxa").read_bytes()
    refusal = ""
    try:
        before.save_outcomes(EVERY[name].run(checkpoint=folder, resume=True), folder)
    except doxa.DoxaError as error:
        refusal = str(error)
    learned = list(folder.rglob(BELIEFS))
    assert all(bool(t.isfinite().all()) for path in learned for t in load_file(path).values())
    if not learned:
        assert "checkpoint" in refusal
        assert (folder / "checkpoint.doxa").read_bytes() == saved, "what is refused is left as it was"


@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}-{HOW}") for name in PLANS])
def test_a_run_of_the_command_line_opens_and_predicts_the_same(name: str) -> None:
    folder = FOLDER / "runs" / name
    expected, predictions = json.loads((folder / PREDICTIONS).read_text()), before.predict_first_rows(folder)
    assert predictions.keys() == expected.keys()
    for column, values in expected.items():
        assert predictions[column] == (pytest.approx(values, rel=APART) if APART else values)
    assert open_run(folder).result()["scores"]


# Those that there were.
FAMILIES = {doxa.posteriors.TABLE[name] for name in ("delta", "mean_field", "dropout", "particles", "mixture")}


def test_every_family_of_beliefs_is_among_them() -> None:
    paths = {path: case.net() for name, case in EVERY.items() for path in (FOLDER / name).rglob(BELIEFS)}
    assert {type(doxa.load(path, net).posterior) for path, net in paths.items()} == FAMILIES
