"""The rows that members are scored on: who has some, what is read of them, and by what they are known again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.utils.data import DataLoader

from doxa.contracts import Inputs, Problem
from doxa.data.rows import as_pair, concat_batches
from doxa.engine.epochs import Validation
from doxa.engine.feed import InMemoryFeed
from doxa.errors import BadInput
from doxa.random.keys import isolated_rng
from doxa.training.members import Member
from doxa.weights.probe import probe


def require_validation(members: Sequence[Member], patience: int | None) -> None:
    """Refuse members of which only some have validation data, and patience without any."""
    has_validation = members[0].validation is not None
    if any((member.validation is not None) is not has_validation for member in members):
        raise BadInput("some members have validation data and others none; give all of them some, or none")
    if patience is not None and not has_validation:
        raise BadInput("patience needs validation data to be patient with: pass validation=(x, y)")


def read_validation(
    members: Sequence[Member], problem: Problem, like: Tensor, batch_size: int, samples: int
) -> tuple[Validation | None, list[str | None]]:
    """Each member's rows, checked and on their device, and fingerprints of them; nothing where there are none."""
    if members[0].validation is None:
        return None, [None] * len(members)
    # What several members share is there once.
    validation_by_id = {id(member.validation): member.validation for member in members}
    rows_by_id = {key: _held_out_rows(validation, problem, like) for key, validation in validation_by_id.items()}
    fingerprint_by_id = {key: InMemoryFeed(*pair, batch_size).fingerprint() for key, pair in rows_by_id.items()}
    validation = Validation([rows_by_id[id(member.validation)] for member in members], samples)
    return validation, [fingerprint_by_id[id(member.validation)] for member in members]


def _held_out_rows(validation: Any, problem: Problem, like: Tensor) -> tuple[Inputs, Tensor]:
    if isinstance(validation, DataLoader):
        with isolated_rng(like.device):
            validation = concat_batches(list(validation))
    x, y = as_pair(validation, like, "validation")
    _, output = probe(problem.net, problem.layout, problem.start[0], {k: b[0] for k, b in problem.buffers.items()}, x)
    return x, problem.likelihood.check(output, y)
