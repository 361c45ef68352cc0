"""Draws that are dealt evenly to the members of a mixture: how far these lie apart is no Monte-Carlo error."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from doxa.contracts import Posterior
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.samples import Samples


def strata_of(posterior: Posterior, samples: int, draws: int) -> Tensor | None:
    """The member that each of a posterior's draws is of, as numbers [S]; None where all are draws of one distribution.

    None too where a member yields other draws than were asked of it, as a point yields one: it has no spread, and what
    it stands for is told by the spread of all.
    """
    members = list(_members(posterior, samples))
    if len(members) == 1 or not all(_yields(member, count) for member, count in members):
        return None
    counts = [count for _, count in members]
    return torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)) if sum(counts) == draws else None


def _members(posterior: Posterior, samples: int) -> Iterator[tuple[Posterior, int]]:
    """Every member that is no mixture itself, in their order, and how many draws are asked of it."""
    if not isinstance(posterior, Mixture):
        yield posterior, samples
        return
    for member in posterior.members:
        yield from _members(member, -(-samples // len(posterior.members)))


def _yields(posterior: Posterior, samples: int) -> bool:
    """Whether it yields so many draws: points and particles yield all that they have, and kept samples no more."""
    distinct = posterior.distinct
    return distinct is None or distinct == samples or (isinstance(posterior, Samples) and distinct > samples)
