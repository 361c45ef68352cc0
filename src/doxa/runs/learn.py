"""From data and a plan to a finished run."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from doxa import noise
from doxa.auto import KL_WEIGHTS, RATE, choose, folds
from doxa.errors import BadInput, shorten
from doxa.judge.evidence import evidence
from doxa.predict.belief import Belief
from doxa.results import write_result
from doxa.runs.folder import BELIEF, RESULT, RUN, SavedRun, open_run, read_spec, write_familiarity, write_spec
from doxa.runs.parsing import build_member, parse_literal
from doxa.runs.plan import Plan
from doxa.runs.training_data import TrainingData
from doxa.training.fit import fit
from doxa.training.threads import ROWS, limit_threads
from doxa.weights.batch_norm import has_batch_norm

EPOCHS, STEPS = 20, 4000  # at least, of a learner that is named, unless said otherwise
COMPARED_KEYS = {
    "data": "source",
    "rows": "number of rows",
    "held_out": "number of rows held out",
    "task": "task",
    "target": "target",
    "classes": "list of classes",
    "plan": "plan",
}  # of a run to go on with
TRAINING, MEMBERS = "training", "members"  # folders of checkpoints, of a learner that is named and of auto


def learn(
    training_data: TrainingData,
    plan: Plan,
    folder: str | PathLike[str],
    *,
    resume: bool = False,
    progress: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> SavedRun:
    """Learn, judge on the rows held out, and write all of it to a folder; the same call with `resume` goes on."""
    folder = Path(folder)
    started = time.perf_counter()
    training_data = plan.adapt_data(training_data)
    spec = _run_spec(training_data, plan)
    net = _initial_net(training_data, plan, spec["units"])
    _require_valid_plan(net, training_data, plan)
    if _claim_folder(folder, spec, resume) != "finished":  # what is finished stays so until it is done anew
        write_spec(folder, spec)
    for note in training_data.notes:
        say(note)
    try:
        with limit_threads(net, plan.batch_size or ROWS):
            if plan.learner == "auto":
                belief, choices = _fit_auto(training_data, plan, spec["units"], folder, progress, say)
            else:
                belief, choices = _fit_named(net, training_data, plan, folder, progress, resume), {}
    except BaseException:
        _remove_empty_run(folder)
        raise
    belief.save(folder / BELIEF)
    if training_data.familiarity is not None:
        write_familiarity(folder, training_data.familiarity)
    with limit_threads(net):
        result = evidence(
            belief,
            training_data.test,
            name=folder.name,
            samples=plan.draws,
            seed=plan.seed,
            levels=None if choices.get("levels") is None else torch.tensor(choices["levels"], dtype=torch.float64),
            about={"name": training_data.name, "classes": list(training_data.classes), **training_data.about},
            settings={k: v for k, v in plan.state().items() if v is not None},
            train=training_data.train,
            refresh=training_data.train[0] if has_batch_norm(net) else None,
            started=started,
        )
    write_result(folder / RESULT, result)
    write_spec(folder, {**spec, **choices, "status": "finished"})
    return open_run(folder)


def _run_spec(training_data: TrainingData, plan: Plan) -> dict[str, Any]:
    y = training_data.train[1]
    spec = {
        "status": "learning",
        "data": training_data.name,
        "rows": len(y),
        "held_out": len(training_data.test[1]),
        "task": training_data.task,
        "target": training_data.target,
        "form": training_data.form,
        "classes": list(training_data.classes),
        "about": training_data.about,
        "shape": list(training_data.train[0].shape[1:]),
        "outputs": training_data.outputs * plan.outputs_per_target,
        "units": plan.output_units(training_data),
        "plan": plan.state(),
        "preparation": None if training_data.preparation is None else training_data.preparation.state(),
        "again": training_data.reload_arguments,
        "digest": _digest(training_data),
    }
    stored_spec: dict[str, Any] = json.loads(json.dumps(spec))  # as it will be read again
    return stored_spec


def require_free_folder(folder: str | PathLike[str], resume: bool) -> None:
    """Refuse a folder that holds something else, or a run to go on with that was not asked for."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; choose another folder for the run")
    if not (folder / RUN).exists():
        if folder.exists() and any(folder.iterdir()):
            raise BadInput(f"{folder} is not empty and holds no run; choose another folder")
    elif not resume:
        raise BadInput(f"{folder} already holds a run; go on with it by --resume, or choose another folder with --out")


def _claim_folder(folder: Path, spec: dict[str, Any], resume: bool) -> str | None:
    """Refuse a folder that holds another run, or one to go on with that was not asked for; else say how far it is."""
    require_free_folder(folder, resume)
    if not (folder / RUN).exists():
        return None
    stored_spec = read_spec(folder)
    stored_spec["plan"] = {**Plan().state(), **stored_spec.get("plan", {})}  # one of an older Doxa may lack a knob
    for name, description in COMPARED_KEYS.items():
        if stored_spec.get(name) != spec[name]:
            raise BadInput(
                f"the run in {folder} has another {description}{_differences(stored_spec.get(name), spec[name])}; use "
                f"the same arguments to go on, or another folder"
            )
    if stored_spec.get("digest") not in (None, spec["digest"]) or stored_spec.get("preparation") != spec["preparation"]:
        raise BadInput(
            f"the run in {folder} was learned from other rows: {shorten(spec['data'])} has changed since, or is read "
            f"in another way; go on with the rows it began with, or choose another folder"
        )
    return str(stored_spec.get("status"))


def _digest(training_data: TrainingData) -> str:
    """The same for the same rows, to learn from and to be judged on."""
    digest = hashlib.sha256()
    for tensor in (*training_data.train, *training_data.test):
        digest.update(repr((tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def _differences(stored: Any, new: Any) -> str:
    """What two plans differ in, in brackets."""
    if not (isinstance(stored, dict) and isinstance(new, dict)) or "learner" not in new:
        return ""
    changed = [f"{k}: {stored.get(k)} there, {v} here" for k, v in new.items() if stored.get(k) != v]
    return f" ({shorten('; '.join(changed), 200)})"


def _remove_empty_run(folder: Path) -> None:
    """Leave no run behind that has learned nothing: the next attempt may have the folder."""
    if not any((folder / part).exists() for part in (TRAINING, MEMBERS, BELIEF)):
        (folder / RUN).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


def _require_valid_plan(net: nn.Module, training_data: TrainingData, plan: Plan) -> None:
    """Refuse a plan that cannot be carried out, before anything is written."""
    plan.require_used()
    plan.build_prior(net)
    if plan.learner == "auto":
        _auto_settings(plan)
        build_member(plan.noise, noise.TABLE, "noise")
    else:
        plan.build_learner(net)
        plan.build_likelihood(training_data)
        plan.build_rate()
        plan.build_optimiser()
        plan.autocast_dtype()
        plan.chooser(net)


def _initial_net(training_data: TrainingData, plan: Plan, units: list[Any]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        return plan.architecture(training_data, *units)


def _fit_auto(
    training_data: TrainingData, plan: Plan, units: list[Any], folder: Path, progress: bool, say: Callable[[str], None]
) -> tuple[Belief, dict[str, Any]]:
    kl_weights_tried, rate = _auto_settings(plan)
    x, y = training_data.train
    auto_belief = choose(
        lambda: plan.architecture(training_data, *units),
        x,
        y,
        classes=bool(training_data.classes),
        kl_weights=kl_weights_tried,
        epochs=plan.epochs,
        batch_size=plan.batch_size,
        lr=rate,
        prior=None if plan.prior is None else plan.build_prior(_initial_net(training_data, plan, units)),
        noise=build_member(plan.noise, noise.TABLE, "noise"),
        members=plan.members,
        seed=plan.seed,
        device=plan.device,
        folder=folder / MEMBERS,
        progress=progress,
        say=say,
    )
    choices = {
        "kl_weight": auto_belief.kl_weight,
        "noise": auto_belief.noise,
        "trials": [vars(trial) for trial in auto_belief.trials],
        "levels": None if auto_belief.levels is None else auto_belief.levels.tolist(),
    }
    return auto_belief.belief, choices


def _auto_settings(plan: Plan) -> tuple[tuple[float, ...], float]:
    """The KL weights that the learner auto is to try, and its learning rate."""
    kl_weights_tried = KL_WEIGHTS if plan.kl_weight is None else _parse_numbers("kl_weight", plan.kl_weight)
    rates = (RATE,) if plan.lr is None else _parse_numbers("lr", plan.lr)
    if len(rates) > 1:
        raise BadInput(f"the learner auto tries KL weights, not learning rates; give one, got {plan.lr!r}")
    return kl_weights_tried, rates[0]


def _parse_numbers(name: str, text: str) -> tuple[float, ...]:
    values = [parse_literal(item) for item in text.split(",")]
    if not all(isinstance(v, int | float) for v in values):
        raise BadInput(f"with the learner auto, {name} must be a number, or several to try; got {text!r}")
    return tuple(float(v) for v in values)


def default_epochs(rows: int, batch_size: int | None) -> int:
    """How often a learner that is named goes over so many rows: few of them take more rounds to learn from."""
    return max(EPOCHS, math.ceil(STEPS / math.ceil(rows / (batch_size or ROWS))))


def _fit_named(
    net: nn.Module, training_data: TrainingData, plan: Plan, folder: Path, progress: bool, resume: bool
) -> Belief:
    x, y = training_data.train
    validation_mask = folds(y.flatten() if training_data.classes else torch.zeros(len(y)), 10, plan.seed) == 0
    stops_early = plan.patience is not None
    training_mask = ~validation_mask if stops_early else torch.ones(len(y), dtype=torch.bool)
    return fit(
        net,
        (x[training_mask], y[training_mask]),
        learner=plan.build_learner(net),
        likelihood=plan.build_likelihood(training_data),
        epochs=plan.epochs or default_epochs(len(x), plan.batch_size),
        batch_size=plan.batch_size or ROWS,
        lr=plan.build_rate(),
        validation=(x[validation_mask], y[validation_mask]) if stops_early else None,
        patience=plan.patience,
        validation_samples=plan.validation_samples,
        random=plan.chooser(net),
        seed=plan.seed,
        device=plan.device,
        optimiser=plan.build_optimiser(),
        autocast=plan.autocast_dtype(),
        checkpoint=folder / TRAINING,
        checkpoint_every=plan.checkpoint_every,
        checkpoint_steps=plan.checkpoint_steps,
        resume=resume,
        progress=progress,
    )
