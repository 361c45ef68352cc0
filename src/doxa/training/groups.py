"""Which members of a fleet learn as one program: those of a kind, as many as fit into memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa.engine.checkpoint import has_checkpoint
from doxa.errors import BadInput, BrokenFile
from doxa.storage.disk import atomic_write
from doxa.training.members import Member
from doxa.training.problem import to_device

CPU_BYTES = 2 << 30  # of weights and all that goes with them, at once on a CPU
VECTORS_PER_NET = 12  # as long as the weights, that a net in training needs
VECTORS_PER_DRAW = 6  # more for each further draw, where they run side by side
DIVISION = "fleet.json"


def group_members(members: Sequence[Member], at_once: int | None, device: torch.device | str | None) -> list[list[int]]:
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


def saved_groups(root: Path, groups: list[list[int]], resume: bool) -> list[list[int]]:
    """The parts of a fleet as it was first divided, however much memory there is today; kept beside its checkpoints."""
    if root.exists() and not root.is_dir():
        raise BadInput(f"checkpoint must be a folder, but {root} is a file; choose another name")
    path = root / DIVISION
    if not path.exists():
        if has_checkpoint(root) and resume:
            return [sorted(k for group in groups for k in group)]  # it was one part then
        if has_checkpoint(root):
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
