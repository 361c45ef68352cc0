"""`doxa.fleet`: many networks of one architecture, trained as one program."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from doxa.contracts import Likelihood, Schedule
from doxa.data.rows import as_inputs, runnable
from doxa.engine.checkpoint import CHECKPOINT
from doxa.engine.contracts import Learner
from doxa.engine.epochs import Watch
from doxa.errors import BadInput, BrokenFile, Diverged, Interrupted, whole
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.predict.sweep import ROWS, Question, like, sweep
from doxa.storage.disk import replacing
from doxa.terminal.interrupt import gentle_interrupt
from doxa.training.members import Member, require_members
from doxa.training.options import Optimiser, Options
from doxa.training.problem import on
from doxa.training.train import train
from doxa.weights.layout import Chooser

BYTES = 2 << 30  # of weights and all that goes with them, at once on a CPU
VECTORS = 12  # as long as the weights, that a net in training needs
PER_DRAW = 6  # more for each further draw, where they run side by side
DIVISION = "fleet.json"


def fleet(
    net: nn.Module | Sequence[nn.Module],
    data: Any,
    *,
    learners: Learner | Sequence[Learner],
    likelihood: Likelihood,
    seeds: int | Sequence[int] = 0,
    lr: float | Schedule | Sequence[float | Schedule | None] | None = None,
    rows: Sequence[Any] | None = None,
    epochs: int = Options.epochs,
    batch_size: int = Options.batch_size,
    optimiser: Optimiser | None = Options.optimiser,
    validation: Any = None,
    validation_samples: int = Options.validation_samples,
    patience: int | None = Options.patience,
    size: int | None = Options.size,
    random: Chooser | None = Options.random,
    device: torch.device | str | None = Options.device,
    autocast: torch.dtype | None = Options.autocast,
    checkpoint: str | PathLike[str] | None = Options.checkpoint,
    checkpoint_every: int = Options.checkpoint_every,
    checkpoint_steps: int | None = Options.checkpoint_steps,
    resume: bool = Options.resume,
    progress: bool = Options.progress,
    watch: Watch | None = Options.watch,
    watch_every: int = Options.watch_every,
    at_once: int | None = None,
) -> list[Belief]:
    """Learn as many beliefs as there are learners, seeds or rates: those `doxa.fit` would learn one by one, sooner.

    `net`, `learners`, `seeds` and `lr` are one for all or one a member; `rows`, indices of the data, and `validation`,
    a list of pairs (x, y), may be each member's own. Learners may differ in prior, KL weight, start and rate; those of
    different kinds (another noise, another number of samples) are trained one kind after the other, as are fleets of
    more than `at_once` members, by default as many as fit into memory. Members stop early by themselves. `watch` is
    shown all beliefs awake, in a list, and gives a row of numbers for each. The rest is as in `doxa.fit`.
    """
    options = Options.among(locals())
    given = {name: _listed(v) for name, v in (("learners", learners), ("seeds", seeds), ("lr", lr), ("rows", rows))}
    given |= {"net": None if isinstance(net, nn.Module) else _listed(net), "validation": _own(validation)}
    counts = {name: len(v) for name, v in given.items() if v is not None}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{n} {name}" for name, n in counts.items())
        raise BadInput(f"a fleet needs one learner, seed, rate … for all or one a member; got {said}")
    count = next(iter(counts.values()), 1)
    if count == 0:
        raise BadInput("a fleet needs at least one member: give learners, seeds or rates")

    def each(name: str, one: Any) -> list[Any]:
        found = given[name]
        return [one] * count if found is None else found

    columns = (
        each("net", net),
        each("learners", learners),
        [whole("seed", seed, least=None) for seed in each("seeds", seeds)],
        each("lr", lr),
        each("validation", validation),
        each("rows", None),
    )
    numbers = list(range(count)) if count > 1 else [None]
    members = [Member(*own) for own in zip(*columns, numbers, strict=True)]
    for one in members:
        require_members(one.net, one.learner, likelihood, optimiser, autocast)
    _tell_twins(members)
    groups = _programs(members, None if at_once is None else whole("at_once", at_once), device)
    root = None if checkpoint is None else Path(checkpoint)
    if root is not None:
        groups = _divided(root, groups, resume)
    several = len(groups) > 1
    found: dict[int, Belief | None] = {}
    troubles: dict[int, str] = {}
    with gentle_interrupt() as stop:
        for number, group in enumerate(groups):
            if stop.is_set():
                saved = "nothing was saved, for want of a checkpoint folder" if root is None else f"saved in {root}"
                learned = [found.get(k) for k in range(count)]
                raise Interrupted(f"stopped after part {number} of {len(groups)} of the fleet; {saved}", learned)
            try:
                beliefs: Sequence[Belief | None] = train(
                    [members[k] for k in group],
                    data,
                    likelihood,
                    replace(options, checkpoint=root / f"part-{number}") if several and root is not None else options,
                    f"part {number + 1}/{len(groups)}, " if several else "",
                )
            except Diverged as error:
                if count == 1:
                    raise
                beliefs = error.beliefs or [None]
                troubles |= {group[k]: what for k, what in (error.troubles or {0: str(error)}).items()}
            except Interrupted as error:
                learned = [error.belief] if len(group) == 1 else error.belief
                found |= dict(zip(group, learned, strict=True))
                error.belief = [found.get(k) for k in range(count)] if count > 1 else learned[0]
                raise
            found |= dict(zip(group, beliefs, strict=True))
    if troubles:
        raise Diverged.some(troubles, [found[k] for k in range(count)])
    return [belief for k in range(count) if (belief := found[k]) is not None]


def predict(
    beliefs: Sequence[Belief],
    x: Any,
    samples: int = 50,
    seed: int = 0,
    rows: int = ROWS,
    autocast: torch.dtype | None = None,
) -> list[Draws]:
    """What each belief says of the same rows, as its own `predict` would; those of one fleet are asked together."""
    samples, rows = whole("samples", samples), whole("rows", rows)
    found: dict[int, Draws] = {}
    kinds: dict[Any, list[int]] = {}
    for k, one in enumerate(beliefs):
        mean = like(one.posterior)
        kinds.setdefault((id(one.net), id(one.likelihood), one.layout, mean.device, mean.dtype), []).append(k)
    for group in kinds.values():
        first = beliefs[group[0]]
        inputs = as_inputs(x, like=like(first.posterior))
        own = [beliefs[k] for k in group]
        questions = [Question(one.posterior, one.buffers, inputs, (seed, "predict")) for one in own]
        with runnable(inputs, autocast):
            answers = sweep(first.net, first.layout, first.likelihood, questions, samples, rows, autocast)
        found |= dict(zip(group, answers, strict=True))
    return [found[k] for k in range(len(beliefs))]


def _listed(value: Any) -> list[Any] | None:
    """What was given for each member; None where it is one for all."""
    if value is None or callable(value) or isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
        return None
    if isinstance(value, Tensor | np.ndarray):
        return value.tolist() if value.ndim == 1 else None
    return list(value)


def _own(validation: Any) -> list[Any] | None:
    """A pair for each member; None where it is one pair for all, which may be a list of two as well."""
    if not isinstance(validation, list | tuple) or (isinstance(validation, tuple) and len(validation) == 2):
        return None
    each = [v is None or isinstance(v, tuple | DataLoader) for v in validation]
    return list(validation) if all(each) else None


def _tell_twins(members: Sequence[Member]) -> None:
    """Warn of members that cannot but learn the same."""
    seen: dict[Any, int | None] = {}
    for one in members:
        key = (id(one.net), id(one.learner), one.seed, repr(one.lr), id(one.validation), id(one.rows))
        if key in seen:
            warnings.warn(
                f"members {seen[key]} and {one.number} are the same in everything and will learn the same: give seeds",
                stacklevel=3,
            )
            return
        seen[key] = one.number


def _programs(members: Sequence[Member], at_once: int | None, device: torch.device | str | None) -> list[list[int]]:
    """Members that can work as one program, in lists of at most `at_once`, or of as many as fit into memory."""
    kinds: dict[Any, list[int]] = {}
    for k, one in enumerate(members):
        kind = getattr(one.learner, "kind", None)
        kinds.setdefault((kind, type(one.learner.prior), _many(one.rows)), []).append(k)
    found = []
    for group in kinds.values():
        most = at_once or _fitting(members[group[0]], device)
        found += [group[i : i + most] for i in range(0, len(group), most)]
    return found


def _many(rows: Any) -> int | None:
    """How many rows a member learns from, given as indices or as a mask."""
    if rows is None:
        return None
    given = rows.cpu().numpy() if isinstance(rows, Tensor) else np.asarray(rows)
    return int(given.sum()) if given.dtype == bool else given.size


def _divided(root: Path, groups: list[list[int]], resume: bool) -> list[list[int]]:
    """The parts of a fleet as it was first divided, however much memory there is today; kept beside its checkpoints."""
    if root.exists() and not root.is_dir():
        raise BadInput(f"checkpoint must be a folder, but {root} is a file; choose another name")
    path = root / DIVISION
    if not path.exists():
        if (root / CHECKPOINT).exists() and resume:
            return [sorted(k for group in groups for k in group)]  # it was one part then
        if (root / CHECKPOINT).exists():
            raise BadInput(f"{root} already holds a run; pass resume=True to go on with it, or choose another folder")
        if len(groups) > 1:
            with replacing(path) as file:
                json.dump({"parts": groups}, file)
        return groups
    if not resume:
        raise BadInput(f"{root} already holds a run; pass resume=True to go on with it, or choose another folder")
    try:
        before: list[list[int]] = json.loads(path.read_text())["parts"]
        known = sorted(k for group in before for k in group)
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenFile(f"{path} is not the division of a fleet: {error!r}") from None
    size = sum(map(len, groups))
    if known != list(range(size)):
        raise BadInput(f"{root} belongs to a fleet of {len(known)}, not of {size}; use the same call to go on")
    return before


def _fitting(member: Member, device: torch.device | str | None) -> int:
    """How many members fit into memory at once: by the vectors as long as the weights that each needs."""
    parameters = list(member.net.parameters())
    where = next((p.device for p in parameters), torch.device("cpu"))
    if device is not None:
        where = on(device, torch.empty(0)).device
    # Side by side on a GPU, every draw of a step has weights, noise and gradients of its own.
    draws = getattr(member.learner, "samples", 1) if where.type == "cuda" else 1
    size = sum(p.numel() * p.element_size() for p in parameters) * member.learner.nets
    size *= VECTORS + PER_DRAW * (draws - 1)
    free = torch.cuda.mem_get_info(where)[0] // 2 if where.type == "cuda" else BYTES
    return max(1, free // max(size, 1))
