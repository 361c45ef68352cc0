"""The two losses that a belief about the curve is watched by, over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.over_seeds import summary
from doxa_replicate.weight_uncertainty.curve.measures import mean_curve

LOSSES = {"last_loss": "loss of the last minibatch", "free_energy": "free energy"}
LOSS_OF_COLUMN = {AS_RUN: "last_loss", AS_WRITTEN: "free_energy", CHOSEN: "free_energy"}  # what its claims are about
CONVERGED = {  # when a loss has, in words, by the key of a record
    "epochs_to_5_percent": "epochs to within 5 % of the final loss",
    "epochs_of_95_percent": "epochs to 95 % of the way there",
}
JUDGED_BY = "epochs_of_95_percent"  # since the end may lie near zero
MAX_POINTS = 75  # of a line, where a page has many
Curves = Sequence[Sequence[float]]


def mean_losses(records: Mapping[str, Sequence[Mapping[str, Any]]], loss: str) -> dict[str, Curves]:
    """A loss against epochs by name, mean over seeds."""
    return {name: thinned(mean_curve([r[loss]["curve"] for r in rows])) for name, rows in records.items()}


def loss_ends(records: Mapping[str, Sequence[Mapping[str, Any]]], loss: str, where: str = "end") -> dict[str, Any]:
    """Where a loss ends by name, each seed's."""
    ends = {name: [r[loss][where] for r in rows] for name, rows in records.items()}
    return {name: summary(values) | {"each": values} for name, values in ends.items()}


def thinned(points: Curves, most: int = MAX_POINTS) -> Curves:
    """At most so many points of a line, with its last."""
    step = max(1, -(-len(points) // most))
    return [*points[:-1:step], points[-1]]
