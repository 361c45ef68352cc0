"""From data and a plan to a finished run."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from doxa import noise
from doxa.auto import KL_WEIGHTS, RATE, KLWeight, choose, folds, require_candidates
from doxa.errors import BadInput, BrokenFile
from doxa.judge.evidence import evidence
from doxa.predict.belief import Belief
from doxa.results import write_result
from doxa.runs.claim import claim_folder, intact_parts, question_digest, remove_empty_run, require_free_folder
from doxa.runs.folder import SavedRun, open_run, write_familiarity, write_spec
from doxa.runs.manifest import (
    BELIEF,
    MEMBERS,
    RESULT,
    RUN,
    TABLE,
    TRAINING,
    FileDigest,
    Manifest,
    take_stock,
    write_manifest,
)
from doxa.runs.parsing import build_member, parse_literal
from doxa.runs.plan import Plan
from doxa.runs.training_data import TrainingData
from doxa.storage.disk import temporary_path
from doxa.storage.lock import folder_lock
from doxa.training.fit import fit
from doxa.training.threads import ROWS, limit_threads
from doxa.weights.batch_norm import has_batch_norm

EPOCHS, STEPS = 20, 4000  # at least, of a learner that is named, unless said otherwise


def learn(
    training_data: TrainingData,
    plan: Plan,
    folder: str | PathLike[str],
    *,
    resume: bool = False,
    progress: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> SavedRun:
    """Learn, judge on the rows held out, and write all of it to a folder; the same call with `resume` goes on.

    A finished run is opened; of one that is damaged, what is missing is made again, and nothing is learned again if its
    belief is whole. Whatever is in the folder is one sealed unit when this returns, and nobody else may write there
    before.
    """
    folder = Path(folder)
    started = time.perf_counter()
    training_data = plan.adapt_data(training_data)
    spec = _run_spec(training_data, plan)
    net = _initial_net(training_data, plan, spec["units"])
    _require_valid_plan(net, training_data, plan)
    require_free_folder(folder, resume)
    with folder_lock(folder):
        claim = claim_folder(folder, spec, resume, say)
        if claim.finished is not None:
            return claim.finished
        if claim.is_to_describe:
            write_spec(folder, spec)
        for note in training_data.notes:
            say(note)
        if claim.belief is not None and claim.words is not None:
            belief, finished_spec, kept = claim.belief, claim.words, intact_parts(folder, claim.sealed)
        else:
            try:
                belief, choices = _fit(net, training_data, plan, spec["units"], folder, progress, resume, say)
            except BaseException:
                remove_empty_run(folder)
                raise
            finished_spec = {**spec, **choices, "status": "finished"}
            kept = _save_belief(belief, folder, claim.sealed, say)
        if training_data.familiarity is not None and TABLE not in kept:
            write_familiarity(folder, training_data.familiarity)
        if RESULT not in kept:
            _judge(belief, net, training_data, plan, finished_spec, folder, started)
        if RUN not in kept:
            write_spec(folder, finished_spec)
        write_manifest(folder, take_stock(folder, question_digest(finished_spec)))
    return open_run(folder)


def _save_belief(belief: Belief, folder: Path, sealed: Manifest | None, say: Callable[[str], None]) -> set[str]:
    """Write what was learned; of a run that is mended, the parts that are whole and belong to this very belief."""
    intact = intact_parts(folder, sealed)
    if BELIEF not in intact:
        belief.save(folder / BELIEF)
        if sealed is None:
            return set()
        if FileDigest.of_file(folder / BELIEF) == sealed.digest(BELIEF):
            return intact
        say(f"what was learned again has other bits than the {BELIEF} that was sealed, and takes its place")
        return set()
    learned = temporary_path(folder)
    try:
        belief.save(learned)
        is_same = FileDigest.of_file(learned) == FileDigest.of_file(folder / BELIEF)
    finally:
        learned.unlink(missing_ok=True)
    if not is_same:
        raise BrokenFile(
            f"{folder / BELIEF} is whole, but what was learned again has other bits, as with another torch or another "
            "number of threads; restore what is damaged from a copy, or learn in another folder"
        )
    return intact


def _judge(
    belief: Belief,
    net: nn.Module,
    training_data: TrainingData,
    plan: Plan,
    spec: dict[str, Any],
    folder: Path,
    started: float,
) -> None:
    """What the belief is worth on the rows held out."""
    with limit_threads(net):
        result = evidence(
            belief,
            training_data.test,
            name=folder.name,
            samples=plan.draws,
            seed=plan.seed,
            levels=None if spec.get("levels") is None else torch.tensor(spec["levels"], dtype=torch.float64),
            about={"name": training_data.name, "classes": list(training_data.classes), **training_data.about},
            settings={k: v for k, v in plan.state().items() if v is not None},
            train=training_data.train,
            refresh=training_data.train[0] if has_batch_norm(net) else None,
            started=started,
        )
    write_result(folder / RESULT, result)


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


def _digest(training_data: TrainingData) -> str:
    """The same for the same rows, to learn from and to be judged on."""
    digest = hashlib.sha256()
    for tensor in (*training_data.train, *training_data.test):
        digest.update(repr((tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


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


def _fit(
    net: nn.Module,
    training_data: TrainingData,
    plan: Plan,
    units: list[Any],
    folder: Path,
    progress: bool,
    resume: bool,
    say: Callable[[str], None],
) -> tuple[Belief, dict[str, Any]]:
    """What is learned, and what was chosen for it."""
    with limit_threads(net, plan.batch_size or ROWS):
        if plan.learner == "auto":
            return _fit_auto(training_data, plan, units, folder, progress, say)
        return _fit_named(net, training_data, plan, folder, progress, resume), {}


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


def _auto_settings(plan: Plan) -> tuple[tuple[KLWeight, ...], float]:
    """The KL weights that the learner auto is to try, and its learning rate."""
    kl_weights_tried = KL_WEIGHTS if plan.kl_weight is None else _parse_kl_weights(plan.kl_weight)
    rate = RATE if plan.lr is None else parse_literal(plan.lr)
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        raise BadInput(f"the learner auto takes one number as learning rate, and tries KL weights; got {plan.lr!r}")
    return kl_weights_tried, float(rate)


def _parse_kl_weights(text: str) -> tuple[KLWeight, ...]:
    """Numbers, and names of schedules that need no arguments, as in 1,0.1,geometric."""
    values = [parse_literal(item) for item in text.split(",")]
    is_number = [isinstance(value, int | float) and not isinstance(value, bool) for value in values]
    try:
        return require_candidates([v if number else str(v) for v, number in zip(values, is_number, strict=True)])
    except BadInput as error:
        raise BadInput(
            f"{error}; the learner auto tries numbers and names without arguments, as in 1,0.1,geometric: for a "
            f"schedule with arguments name a learner, as variational; got kl_weight {text!r}"
        ) from None


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
