"""The rooms whose members stand in the file of a belief."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doxa import likelihoods, posteriors, priors
from doxa.posteriors.dropout import Masked

ROOMS: dict[str, Mapping[str, Any]] = {
    "priors": priors.TABLE,
    "posteriors": posteriors.TABLE,
    "likelihoods": likelihoods.TABLE,
    "masks": {"channels": Masked},
}


def room_of(value: Any) -> str | None:
    """The room of whose members' class a value is."""
    return next((room for room, table in ROOMS.items() if any(type(value) is c for c in table.values())), None)
