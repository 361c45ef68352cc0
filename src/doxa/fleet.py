"""`doxa.fleet`: many networks of one architecture, trained as one program."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from doxa.belief import Belief
from doxa.contracts import Learner, Likelihood, Schedule
from doxa.draws import Draws
from doxa.errors import BadInput, Diverged, Interrupted, whole
from doxa.fit import Member, Optimiser, train
from doxa.layout import Chooser
from doxa.rows import as_inputs, runnable
from doxa.sweep import ROWS, Question, sweep

T = TypeVar("T")

BYTES = 2 << 30  # of weights and all that goes with them, at once on a CPU
VECTORS = 12  # as long as the weights, that a net in training needs


def fleet(
    net: nn.Module | Sequence[nn.Module],
    data: Any,
    *,
    learners: Learner | Sequence[Learner],
    likelihood: Likelihood,
    seeds: int | Sequence[int] = 0,
    lr: float | Schedule | Sequence[float | Schedule | None] | None = None,
    rows: Sequence[Tensor] | None = None,
    epochs: int = 10,
    batch_size: int = 128,
    optimiser: Optimiser | None = None,
    validation: Any = None,
    validation_samples: int = 8,
    patience: int | None = None,
    random: Chooser | None = None,
    device: torch.device | str | None = None,
    autocast: torch.dtype | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = 1,
    resume: bool = False,
    progress: bool = True,
    at_once: int | None = None,
) -> list[Belief]:
    """Learn as many beliefs as there are learners, seeds or rates: those `doxa.fit` would learn one by one, sooner.

    `net`, `learners`, `seeds` and `lr` are one for all or one a member; `rows`, indices of the data, and `validation`,
    a list of pairs (x, y), may be each member's own. Learners may differ in prior, KL weight, start and rate; those of
    different kinds (another noise, another number of samples) are trained one kind after the other, as are fleets of
    more than `at_once` members, by default as many as fit into memory. Members stop early by themselves. The rest is
    as in `doxa.fit`.
    """
    counts = [len(v) for v in (net, learners, seeds, lr) if isinstance(v, Sequence)]
    counts += [len(v) for v in (rows,) if v is not None]
    counts += [len(validation)] if isinstance(validation, list) else []
    if len(set(counts)) > 1:
        raise BadInput(f"a fleet needs one learner, seed, rate … for all or one a member; got {sorted(set(counts))}")
    size = counts[0] if counts else 1
    if size == 0:
        raise BadInput("a fleet needs at least one member: give learners, seeds or rates")
    own = validation if isinstance(validation, list) else [validation] * size
    members = [
        Member(one, learner, whole("seed", seed, least=None), rate, held_out, part)
        for one, learner, seed, rate, held_out, part in zip(
            _each(net, size),
            _each(learners, size),
            _each(seeds, size),
            _each(lr, size),
            own,
            [None] * size if rows is None else rows,
            strict=True,
        )
    ]
    groups = _programs(members, at_once or _fitting(members[0], device))
    found: dict[int, Belief | None] = {}
    troubles: dict[int, str] = {}
    for number, group in enumerate(groups):
        folder = None if checkpoint is None else Path(checkpoint) / (f"part-{number}" if len(groups) > 1 else "")
        try:
            beliefs: Sequence[Belief | None] = train(
                [members[k] for k in group],
                data,
                likelihood=likelihood,
                epochs=epochs,
                batch_size=batch_size,
                optimiser=optimiser,
                validation_samples=validation_samples,
                patience=patience,
                size=None,
                random=random,
                device=device,
                autocast=autocast,
                checkpoint=folder,
                checkpoint_every=checkpoint_every,
                resume=resume,
                progress=progress,
            )
        except Diverged as error:
            beliefs = error.beliefs or [None]
            troubles |= {group[k]: what for k, what in (error.troubles or {0: str(error)}).items()}
        except Interrupted as error:
            learned = [error.belief] if len(group) == 1 else error.belief
            found |= dict(zip(group, learned, strict=True))
            error.belief = [found.get(k) for k in range(size)]
            raise
        found |= dict(zip(group, beliefs, strict=True))
    if troubles:
        raise Diverged.some(troubles, [found[k] for k in range(size)])
    return [belief for k in range(size) if (belief := found[k]) is not None]


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
        kinds.setdefault((id(one.net), id(one.likelihood), one.posterior.mean.device), []).append(k)
    for group in kinds.values():
        first = beliefs[group[0]]
        inputs = as_inputs(x, like=first.posterior.mean)
        own = [beliefs[k] for k in group]
        questions = [Question(one.posterior, one.buffers, inputs, (seed, "predict")) for one in own]
        with runnable(inputs, autocast):
            answers = sweep(first.net, first.layout, first.likelihood, questions, samples, rows, autocast)
        found |= dict(zip(group, answers, strict=True))
    return [found[k] for k in range(len(beliefs))]


def _each(value: T | Sequence[T], size: int) -> list[T]:
    return list(value) if isinstance(value, Sequence) else [value] * size


def _programs(members: Sequence[Member], at_once: int) -> list[list[int]]:
    """Members that can work as one program, in lists of at most `at_once`."""
    kinds: dict[Any, list[int]] = {}
    for k, one in enumerate(members):
        kind = getattr(one.learner, "kind", None)
        kinds.setdefault((kind, type(one.learner.prior), None if one.rows is None else len(one.rows)), []).append(k)
    return [group[i : i + at_once] for group in kinds.values() for i in range(0, len(group), at_once)]


def _fitting(member: Member, device: torch.device | str | None) -> int:
    """How many members fit into memory at once."""
    parameters = list(member.net.parameters())
    size = sum(p.numel() * p.element_size() for p in parameters) * VECTORS * member.learner.nets
    where = torch.device(device) if device is not None else parameters[0].device
    free = torch.cuda.mem_get_info(where)[0] // 2 if where.type == "cuda" else BYTES
    return max(1, free // max(size, 1))
