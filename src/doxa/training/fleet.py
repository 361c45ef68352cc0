"""`doxa.fleet`: many networks of one architecture, trained as one program."""

from __future__ import annotations

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
from doxa.engine.checkpoint import reserved
from doxa.engine.contracts import Learner
from doxa.engine.epochs import Watch
from doxa.errors import BadInput, Diverged, Interrupted, require_whole
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.predict.sweep import ROWS, PredictionRequest, prototype_of, sweep
from doxa.terminal.interrupt import gentle_interrupt
from doxa.training.groups import group_members, saved_groups
from doxa.training.members import Member, keeps_records, require_training_arguments
from doxa.training.options import Optimiser, Options
from doxa.training.train import train
from doxa.weights.layout import Chooser


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
    members = _build_members(net, learners, seeds, lr, validation, rows)
    count = len(members)
    for member in members:
        require_training_arguments(member.net, member.learner, likelihood, optimiser, autocast)
    _warn_duplicates(members)
    groups = group_members(members, None if at_once is None else require_whole("at_once", at_once), device)
    root = None if checkpoint is None else Path(checkpoint)
    belief_by_member: dict[int, Belief | None] = {}
    troubles: dict[int, str] = {}
    with reserved(root if keeps_records(members) else None), gentle_interrupt() as stop:
        if root is not None:
            groups = saved_groups(root, groups, resume)
        has_parts = len(groups) > 1
        for number, group in enumerate(groups):
            if stop.is_set():
                saved_note = (
                    "nothing was saved, for want of a checkpoint folder" if root is None else f"saved in {root}"
                )
                beliefs_so_far = [belief_by_member.get(k) for k in range(count)]
                raise Interrupted(
                    f"stopped after part {number} of {len(groups)} of the fleet; {saved_note}",
                    beliefs_so_far,
                    stop.signal,
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


def _build_members(net: Any, learners: Any, seeds: Any, lr: Any, validation: Any, rows: Any) -> list[Member]:
    """A member for each of what was given one by one, with what was given for all of them."""
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
        values = per_member[name]
        return [shared_value] * count if values is None else values

    columns = (
        each("net", net),
        each("learners", learners),
        [require_whole("seed", seed, least=None) for seed in each("seeds", seeds)],
        each("lr", lr),
        each("validation", validation),
        each("rows", None),
    )
    numbers = list(range(count)) if count > 1 else [None]
    return [Member(*values) for values in zip(*columns, numbers, strict=True)]


def _per_member(value: Any) -> list[Any] | None:
    """What was given for each member; None where it is one for all."""
    if value is None or callable(value) or isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
        return None
    if isinstance(value, Tensor | np.ndarray):
        return value.tolist() if value.ndim == 1 else None if value.ndim == 0 else list(value)
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
