"""Draws that are dealt evenly to the members of a mixture: how far these lie apart is no Monte-Carlo error."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.contracts import Posterior
from doxa.posteriors.mixture import Mixture


def strata_of(posterior: Posterior, samples: int, draws: int) -> Tensor | None:
    """The member that each of a posterior's draws is of, as numbers [S]; None where all are draws of one distribution.

    None too where a member yields other draws than were asked of it, as a point yields one: then they cannot be told
    apart by their order.
    """
    counts = _draws_of_each(posterior, samples)
    if len(counts) == 1 or sum(counts) != draws:
        return None
    return torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))


def _draws_of_each(posterior: Posterior, samples: int) -> list[int]:
    """How many draws are asked of every member, in their order."""
    if not isinstance(posterior, Mixture):
        return [samples]
    members = posterior.members
    return [count for member in members for count in _draws_of_each(member, -(-samples // len(members)))]
