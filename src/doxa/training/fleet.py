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
from doxa.data.rows import as_inputs, explain_input_errors
from doxa.engine.checkpoint import CHECKPOINT
from doxa.engine.contracts import Learner
from doxa.engine.epochs import Watch
from doxa.errors import BadInput, BrokenFile, Diverged, Interrupted, require_whole
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.predict.sweep import ROWS, PredictionRequest, prototype_of, sweep
from doxa.storage.disk import atomic_write
from doxa.terminal.interrupt import gentle_interrupt
from doxa.training.members import Member, require_training_arguments
from doxa.training.options import Optimiser, Options
from doxa.training.problem import to_device
from doxa.training.train import train
from doxa.weights.layout import Chooser

CPU_BYTES = 2 << 30  # of weights and all that goes with them, at once on a CPU
VECTORS_PER_NET = 12  # as long as the weights, that a net in training needs
VECTORS_PER_DRAW = 6  # more for each further draw, where they run side by side
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
    options = Options.from_arguments(locals())
    per_member = {
        name: _per_member(v) for name, v in (("learners", learners), ("seeds", seeds), ("lr", lr), ("rows", rows))
    }
    per_member |= {
        "net": None if isinstance(net, nn.Module) else _per_member(net),
        "validation": _validation_per_member(validation),
    }
    counts = {name: len(v) for name, v in per_member.items() if v is not None}
    if len(set(counts.values())) > 1:
        counts_text = ", ".join(f"{n} {name}" for name, n in counts.items())
        raise BadInput(f"a fleet needs one learner, seed, rate … for all or one a member; got {counts_text}")
    count = next(iter(counts.values()), 1)
    if count == 0:
        raise BadInput("a fleet needs at least one member: give learners, seeds or rates")

    def each(name: str, shared_value: Any) -> list[Any]:
        belief_by_member = per_member[name]
        return [shared_value] * count if belief_by_member is None else belief_by_member

    columns = (
        each("net", net),
        each("learners", learners),
        [require_whole("seed", seed, least=None) for seed in each("seeds", seeds)],
        each("lr", lr),
        each("validation", validation),
        each("rows", None),
    )
    numbers = list(range(count)) if count > 1 else [None]
    members = [Member(*values) for values in zip(*columns, numbers, strict=True)]
    for member in members:
        require_training_arguments(member.net, member.learner, likelihood, optimiser, autocast)
    _warn_duplicates(members)
    groups = _group_members(members, None if at_once is None else require_whole("at_once", at_once), device)
    root = None if checkpoint is None else Path(checkpoint)
    if root is not None:
        groups = _saved_groups(root, groups, resume)
    has_parts = len(groups) > 1
    belief_by_member: dict[int, Belief | None] = {}
    troubles: dict[int, str] = {}
    with gentle_interrupt() as stop:
        for number, group in enumerate(groups):
            if stop.is_set():
                saved_note = (
                    "nothing was saved, for want of a checkpoint folder" if root is None else f"saved in {root}"
                )
                beliefs_so_far = [belief_by_member.get(k) for k in range(count)]
                raise Interrupted(
                    f"stopped after part {number} of {len(groups)} of the fleet; {saved_note}", beliefs_so_far
                )
            try:
                beliefs: Sequence[Belief | None] = train(
                    [members[k] for k in group],
                    data,
                    likelihood,
                    replace(options, checkpoint=root / f"part-{number}") if has_parts and root is not None else options,
                    f"part {number + 1}/{len(groups)}, " if has_parts else "",
                )
            except Diverged as error:
                if count == 1:
                    raise
                beliefs = error.beliefs or [None]
                troubles |= {group[k]: what for k, what in (error.troubles or {0: str(error)}).items()}
            except Interrupted as error:
                beliefs_so_far = [error.belief] if len(group) == 1 else error.belief
                belief_by_member |= dict(zip(group, beliefs_so_far, strict=True))
                error.belief = [belief_by_member.get(k) for k in range(count)] if count > 1 else beliefs_so_far[0]
                raise
            belief_by_member |= dict(zip(group, beliefs, strict=True))
    if troubles:
        raise Diverged.of_members(troubles, [belief_by_member[k] for k in range(count)])
    return [belief for k in range(count) if (belief := belief_by_member[k]) is not None]


def predict(
    beliefs: Sequence[Belief],
    x: Any,
    samples: int = 50,
    seed: int = 0,
    rows: int = ROWS,
    autocast: torch.dtype | None = None,
) -> list[Draws]:
    """What each belief says of the same rows, as its own `predict` would; those of one fleet are asked together."""
    samples, rows = require_whole("samples", samples), require_whole("rows", rows)
    draws_by_belief: dict[int, Draws] = {}
    kinds: dict[Any, list[int]] = {}
    for k, belief in enumerate(beliefs):
        mean = prototype_of(belief.posterior)
        kinds.setdefault((id(belief.net), id(belief.likelihood), belief.layout, mean.device, mean.dtype), []).append(k)
    for group in kinds.values():
        first = beliefs[group[0]]
        inputs = as_inputs(x, like=prototype_of(first.posterior))
        group_beliefs = [beliefs[k] for k in group]
        requests = [
            PredictionRequest(belief.posterior, belief.buffers, inputs, (seed, "predict")) for belief in group_beliefs
        ]
        with explain_input_errors(inputs, autocast):
            group_draws = sweep(first.net, first.layout, first.likelihood, requests, samples, rows, autocast)
        draws_by_belief |= dict(zip(group, group_draws, strict=True))
    return [draws_by_belief[k] for k in range(len(beliefs))]


def _per_member(value: Any) -> list[Any] | None:
    """What was given for each member; None where it is one for all."""
    if value is None or callable(value) or isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
        return None
    if isinstance(value, Tensor | np.ndarray):
        return value.tolist() if value.ndim == 1 else None
    return list(value)


def _validation_per_member(validation: Any) -> list[Any] | None:
    """A pair for each member; None where it is one pair for all, which may be a list of two as well."""
    if not isinstance(validation, list | tuple) or (isinstance(validation, tuple) and len(validation) == 2):
        return None
    is_pair = [v is None or isinstance(v, tuple | DataLoader) for v in validation]
    return list(validation) if all(is_pair) else None


def _warn_duplicates(members: Sequence[Member]) -> None:
    """Warn of members that cannot but learn the same."""
    number_by_key: dict[Any, int | None] = {}
    for member in members:
        key = (id(member.net), id(member.learner), member.seed, repr(member.lr), id(member.validation), id(member.rows))
        if key in number_by_key:
            warnings.warn(
                f"members {number_by_key[key]} and {member.number} are the same in everything and will learn the "
                "same: give seeds",
                stacklevel=3,
            )
            return
        number_by_key[key] = member.number


def _group_members(
    members: Sequence[Member], at_once: int | None, device: torch.device | str | None
) -> list[list[int]]:
    """Members that can work as one program, in lists of at most `at_once`, or of as many as fit into memory."""
    kinds: dict[Any, list[int]] = {}
    for k, member in enumerate(members):
        kind = getattr(member.learner, "kind", None)
        kinds.setdefault((kind, type(member.learner.prior), _row_count(member.rows)), []).append(k)
    programs = []
    for group in kinds.values():
        limit = at_once or _members_that_fit(members[group[0]], device)
        programs += [group[i : i + limit] for i in range(0, len(group), limit)]
    return programs


def _row_count(rows: Any) -> int | None:
    """How many rows a member learns from, given as indices or as a mask."""
    if rows is None:
        return None
    array = rows.cpu().numpy() if isinstance(rows, Tensor) else np.asarray(rows)
    return int(array.sum()) if array.dtype == bool else array.size


def _saved_groups(root: Path, groups: list[list[int]], resume: bool) -> list[list[int]]:
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
            with atomic_write(path) as file:
                json.dump({"parts": groups}, file)
        return groups
    if not resume:
        raise BadInput(f"{root} already holds a run; pass resume=True to go on with it, or choose another folder")
    try:
        saved: list[list[int]] = json.loads(path.read_text())["parts"]
        saved_members = sorted(k for group in saved for k in group)
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenFile(f"{path} is not the division of a fleet: {error!r}") from None
    size = sum(map(len, groups))
    if saved_members != list(range(size)):
        raise BadInput(f"{root} belongs to a fleet of {len(saved_members)}, not of {size}; use the same call to go on")
    return saved


def _members_that_fit(member: Member, device: torch.device | str | None) -> int:
    """How many members fit into memory at once: by the vectors as long as the weights that each needs."""
    parameters = list(member.net.parameters())
    where = next((p.device for p in parameters), torch.device("cpu"))
    if device is not None:
        where = to_device(device, torch.empty(0)).device
    # Side by side on a GPU, every draw of a step has weights, noise and gradients of its own.
    draws = getattr(member.learner, "samples", 1) if where.type == "cuda" else 1
    size = sum(p.numel() * p.element_size() for p in parameters) * member.learner.nets
    size *= VECTORS_PER_NET + VECTORS_PER_DRAW * (draws - 1)
    free = torch.cuda.mem_get_info(where)[0] // 2 if where.type == "cuda" else CPU_BYTES
    return max(1, free // max(size, 1))
