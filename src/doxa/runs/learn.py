"""From material and a plan to a finished run."""

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
from doxa.errors import BadInput, shown
from doxa.judge.evidence import evidence
from doxa.kernels.threads import ROWS, threads
from doxa.predict.belief import Belief
from doxa.results import write_result
from doxa.runs.folder import BELIEF, RESULT, RUN, Opened, open_run, read_spec, write_familiarity, write_spec
from doxa.runs.material import Material
from doxa.runs.plan import Plan
from doxa.runs.recipes import literal, member
from doxa.training.fit import fit
from doxa.weights.batch_norm import has_batch_norm

EPOCHS, STEPS = 20, 4000  # at least, of a learner that is named, unless said otherwise
COMPARED = {
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
    material: Material,
    plan: Plan,
    folder: str | PathLike[str],
    *,
    resume: bool = False,
    progress: bool = True,
    say: Callable[[str], None] = lambda words: None,
) -> Opened:
    """Learn, judge on the rows held out, and write all of it to a folder; the same call with `resume` goes on."""
    folder = Path(folder)
    started = time.perf_counter()
    material = plan.suited(material)
    spec = _spec(material, plan)
    net = _fresh(material, plan, spec["units"])
    _require_sense(net, material, plan)
    if _claim(folder, spec, resume) != "finished":  # what is finished stays so until it is done anew
        write_spec(folder, spec)
    for note in material.notes:
        say(note)
    try:
        with threads(net, plan.batch_size or ROWS):
            if plan.learner == "auto":
                belief, found = _chosen(material, plan, spec["units"], folder, progress, say)
            else:
                belief, found = _fitted(net, material, plan, folder, progress, resume), {}
    except BaseException:
        _withdraw(folder)
        raise
    belief.save(folder / BELIEF)
    if material.familiarity is not None:
        write_familiarity(folder, material.familiarity)
    with threads(net):
        result = evidence(
            belief,
            material.test,
            name=folder.name,
            samples=plan.draws,
            seed=plan.seed,
            levels=None if found.get("levels") is None else torch.tensor(found["levels"], dtype=torch.float64),
            about={"name": material.name, "classes": list(material.classes), **material.about},
            settings={k: v for k, v in plan.state().items() if v is not None},
            train=material.train,
            refresh=material.train[0] if has_batch_norm(net) else None,
            started=started,
        )
    write_result(folder / RESULT, result)
    write_spec(folder, {**spec, **found, "status": "finished"})
    return open_run(folder)


def _spec(material: Material, plan: Plan) -> dict[str, Any]:
    y = material.train[1]
    spec = {
        "status": "learning",
        "data": material.name,
        "rows": len(y),
        "held_out": len(material.test[1]),
        "task": material.task,
        "target": material.target,
        "form": material.form,
        "classes": list(material.classes),
        "about": material.about,
        "shape": list(material.train[0].shape[1:]),
        "outputs": material.outputs * plan.parts,
        "units": plan.units(material),
        "plan": plan.state(),
        "preparation": None if material.preparation is None else material.preparation.state(),
        "again": material.again,
        "digest": _digest(material),
    }
    found: dict[str, Any] = json.loads(json.dumps(spec))  # as it will be read again
    return found


def require_free(folder: str | PathLike[str], resume: bool) -> None:
    """Refuse a folder that holds something else, or a run to go on with that was not asked for."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; choose another folder for the run")
    if not (folder / RUN).exists():
        if folder.exists() and any(folder.iterdir()):
            raise BadInput(f"{folder} is not empty and holds no run; choose another folder")
    elif not resume:
        raise BadInput(f"{folder} already holds a run; go on with it by --resume, or choose another folder with --out")


def _claim(folder: Path, spec: dict[str, Any], resume: bool) -> str | None:
    """Refuse a folder that holds another run, or one to go on with that was not asked for; else say how far it is."""
    require_free(folder, resume)
    if not (folder / RUN).exists():
        return None
    there = read_spec(folder)
    there["plan"] = {**Plan().state(), **there.get("plan", {})}  # one of an older Doxa may lack a knob
    for name, said in COMPARED.items():
        if there.get(name) != spec[name]:
            raise BadInput(
                f"the run in {folder} has another {said}{_differences(there.get(name), spec[name])}; use the same "
                f"arguments to go on, or another folder"
            )
    if there.get("digest") not in (None, spec["digest"]) or there.get("preparation") != spec["preparation"]:
        raise BadInput(
            f"the run in {folder} was learned from other rows: {shown(spec['data'])} has changed since, or is read in "
            f"another way; go on with the rows it began with, or choose another folder"
        )
    return str(there.get("status"))


def _digest(material: Material) -> str:
    """The same for the same rows, to learn from and to be judged on."""
    digest = hashlib.sha256()
    for tensor in (*material.train, *material.test):
        digest.update(repr((tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def _differences(there: Any, here: Any) -> str:
    """What two plans differ in, in brackets."""
    if not (isinstance(there, dict) and isinstance(here, dict)) or "learner" not in here:
        return ""
    changed = [f"{k}: {there.get(k)} there, {v} here" for k, v in here.items() if there.get(k) != v]
    return f" ({shown('; '.join(changed), 200)})"


def _withdraw(folder: Path) -> None:
    """Leave no run behind that has learned nothing: the next attempt may have the folder."""
    if not any((folder / part).exists() for part in (TRAINING, MEMBERS, BELIEF)):
        (folder / RUN).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


def _require_sense(net: nn.Module, material: Material, plan: Plan) -> None:
    """Refuse a plan that cannot be carried out, before anything is written."""
    plan.require_used()
    plan.makes_prior(net)
    if plan.learner == "auto":
        _tried(plan)
        member(plan.noise, noise.TABLE, "noise")
    else:
        plan.makes_learner(net)
        plan.makes_likelihood(material)
        plan.makes_rate()
        plan.makes_optimiser()
        plan.precision()
        plan.chooser(net)


def _fresh(material: Material, plan: Plan, units: list[Any]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        return plan.architecture(material, *units)


def _chosen(
    material: Material, plan: Plan, units: list[Any], folder: Path, progress: bool, say: Callable[[str], None]
) -> tuple[Belief, dict[str, Any]]:
    weights, rate = _tried(plan)
    x, y = material.train
    chosen = choose(
        lambda: plan.architecture(material, *units),
        x,
        y,
        classes=bool(material.classes),
        kl_weights=weights,
        epochs=plan.epochs,
        batch_size=plan.batch_size,
        lr=rate,
        prior=None if plan.prior is None else plan.makes_prior(_fresh(material, plan, units)),
        noise=member(plan.noise, noise.TABLE, "noise"),
        members=plan.members,
        seed=plan.seed,
        device=plan.device,
        folder=folder / MEMBERS,
        progress=progress,
        say=say,
    )
    found = {
        "kl_weight": chosen.kl_weight,
        "noise": chosen.noise,
        "trials": [vars(trial) for trial in chosen.trials],
        "levels": None if chosen.levels is None else chosen.levels.tolist(),
    }
    return chosen.belief, found


def _tried(plan: Plan) -> tuple[tuple[float, ...], float]:
    """The KL weights that the learner auto is to try, and its learning rate."""
    weights = KL_WEIGHTS if plan.kl_weight is None else _numbers("kl_weight", plan.kl_weight)
    rates = (RATE,) if plan.lr is None else _numbers("lr", plan.lr)
    if len(rates) > 1:
        raise BadInput(f"the learner auto tries KL weights, not learning rates; give one, got {plan.lr!r}")
    return weights, rates[0]


def _numbers(name: str, words: str) -> tuple[float, ...]:
    found = [literal(word) for word in words.split(",")]
    if not all(isinstance(v, int | float) for v in found):
        raise BadInput(f"with the learner auto, {name} must be a number, or several to try; got {words!r}")
    return tuple(float(v) for v in found)


def enough_epochs(rows: int, batch_size: int | None) -> int:
    """How often a learner that is named goes over so many rows: few of them take more rounds to learn from."""
    return max(EPOCHS, math.ceil(STEPS / math.ceil(rows / (batch_size or ROWS))))


def _fitted(net: nn.Module, material: Material, plan: Plan, folder: Path, progress: bool, resume: bool) -> Belief:
    x, y = material.train
    aside = folds(y.flatten() if material.classes else torch.zeros(len(y)), 10, plan.seed) == 0
    patient = plan.patience is not None
    inside = ~aside if patient else torch.ones(len(y), dtype=torch.bool)
    return fit(
        net,
        (x[inside], y[inside]),
        learner=plan.makes_learner(net),
        likelihood=plan.makes_likelihood(material),
        epochs=plan.epochs or enough_epochs(len(x), plan.batch_size),
        batch_size=plan.batch_size or ROWS,
        lr=plan.makes_rate(),
        validation=(x[aside], y[aside]) if patient else None,
        patience=plan.patience,
        validation_samples=plan.validation_samples,
        random=plan.chooser(net),
        seed=plan.seed,
        device=plan.device,
        optimiser=plan.makes_optimiser(),
        autocast=plan.precision(),
        checkpoint=folder / TRAINING,
        checkpoint_every=plan.checkpoint_every,
        checkpoint_steps=plan.checkpoint_steps,
        resume=resume,
        progress=progress,
    )
