"""A run that is refused leaves the one in its folder as it was; a knob without use, or out of range, is refused."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doxa.errors import BadInput
from doxa.runs import Plan, learn, load_training_data, open_run

MODULE: Any = importlib.import_module("doxa.runs.learn")  # the name is the function's, too
QUICK = Plan(net="mlp:8", kl_weight="0.1", epochs=3, members=1, draws=8)
NAMED = Plan(net="mlp:8", learner="variational", epochs=3, draws=8)


def rows(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = np.linspace(-2, 2, 80)
    return {"x": x, "y": 3 * x + rng.normal(size=80)}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("plan", [QUICK, NAMED])
def test_other_rows_do_not_touch_a_finished_run(plan: Plan, tmp_path: Path) -> None:
    run = learn(load_training_data(rows(), "y"), plan, tmp_path / "r", progress=False)
    before = contents(run.folder)
    changed = rows()
    changed["y"][3] += 1
    with pytest.raises(BadInput, match="was learned from other rows: the table has changed since"):
        learn(load_training_data(changed, "y"), plan, tmp_path / "r", resume=True, progress=False)
    assert contents(run.folder) == before
    swapped = {name: values[::-1] for name, values in rows().items()}
    with pytest.raises(BadInput, match="was learned from other rows"):
        learn(load_training_data(swapped, "y"), plan, tmp_path / "r", resume=True, progress=False)
    open_run(tmp_path / "r")


@pytest.mark.parametrize("plan", [QUICK, NAMED])
def test_a_finished_run_is_opened_and_a_damaged_one_stays_as_it_is_until_it_is_mended(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = learn(load_training_data(rows(), "y"), plan, tmp_path / "r", progress=False)
    before = contents(run.folder)

    def refused(*_: object, **__: object) -> None:
        raise BadInput("not today")

    for name in ("choose", "fit"):
        monkeypatch.setattr(MODULE, name, refused)
    learn(load_training_data(rows(), "y"), plan, tmp_path / "r", resume=True, progress=False)
    assert contents(run.folder) == before
    (run.folder / "belief.doxa").write_bytes(b"")
    before = contents(run.folder)
    with pytest.raises(BadInput, match="not today"):
        learn(load_training_data(rows(), "y"), plan, tmp_path / "r", resume=True, progress=False)
    assert contents(run.folder) == before


def test_classes_by_another_name_are_another_run(tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 80)
    learn(load_training_data({"x": x, "y": np.where(x > 0, "b", "a")}, "y"), QUICK, tmp_path / "r", progress=False)
    other_classes = load_training_data({"x": x, "y": np.where(x > 0, "yes", "no")}, "y")
    with pytest.raises(BadInput, match="has another list of classes"):
        learn(other_classes, QUICK, tmp_path / "r", resume=True, progress=False)


@pytest.mark.parametrize("seed", [99999999999999999999, -(2**63) - 1, 2**64])
def test_a_seed_that_torch_does_not_take_is_refused(seed: int) -> None:
    for make in (lambda: Plan(seed=seed), lambda: Plan.from_settings({"seed": seed})):
        with pytest.raises(BadInput, match="seed must lie between"):
            make()


def test_the_largest_seeds_are_taken(tmp_path: Path) -> None:
    for seed in (-(2**63), 2**64 - 1):
        plan = Plan(net="mlp:4", learner="point", epochs=1, draws=2, seed=seed)
        learn(load_training_data(rows(), "y", seed=seed), plan, tmp_path / str(seed), progress=False)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(learner="point", same_start=True), "same_start is of no use without several members"),
        (Plan(learner="point", same_start=True, members=1), "same_start is of no use without several members"),
        (Plan(learner="point", validation_samples=3), "validation_samples is of no use without patience"),
        (Plan(learner="point", validation_samples=0, patience=2), "validation_samples must be at least 1"),
        (Plan(learner="point", checkpoint_every=0), "checkpoint_every must be at least 1"),
        (Plan(learner="point", checkpoint_steps=0), "checkpoint_steps must be at least 1"),
        (Plan(learner="search", workers=-1), "workers must be at least 0"),
        (Plan(checkpoint_steps=3), "checkpoint_steps is of no use to the learner auto"),
        (Plan(validation_samples=3), "validation_samples is of no use to the learner auto"),
        (Plan(checkpoint_every=3), "checkpoint_every is of no use to the learner auto"),
    ],
)
def test_knobs_that_nothing_turns_are_refused(plan: Plan, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plan.require_used()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("annealed:5", "for a schedule with arguments name a learner"),
        ("0.1,annealed", "for a schedule with arguments name a learner"),
        ("true", "there is no KL weight 'True'"),
        ("1,-1", "got kl_weight '1,-1'"),
    ],
)
def test_what_auto_cannot_try_is_told_with_what_can(weights: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=message):
        learn(load_training_data(rows(), "y"), replace(QUICK, kl_weight=weights), tmp_path / "r", progress=False)
    assert not (tmp_path / "r").exists()


def test_the_knobs_of_validation_and_saving_reach_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit_settings: dict[str, Any] = {}
    fit = MODULE.fit

    def heard(*arguments: Any, **settings: Any) -> Any:
        fit_settings.update(settings)
        return fit(*arguments, **settings)

    monkeypatch.setattr(MODULE, "fit", heard)
    knobs = {"patience": 1, "validation_samples": 3, "checkpoint_every": 2, "checkpoint_steps": 1}
    plan = Plan(net="mlp:4", learner="variational", epochs=2, draws=2, **knobs)
    run = learn(load_training_data(rows(), "y"), plan, tmp_path / "r", progress=False)
    assert {name: fit_settings[name] for name in knobs} == knobs
    assert run.belief.record.settings["validation_samples"] == 3
