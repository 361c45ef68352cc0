"""Scores as several tables hold them: over seeds, and with a word about those that are infinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.weight_uncertainty.digits.trainings.cells import Cell


def score_row(model_cells: Sequence[Cell]) -> dict[str, Any]:
    """The scores of a net, mean and standard error over seeds."""
    scores = {key: [cell["test"][key] for cell in model_cells] for key in ("error", "nll", "ece", "brier")}
    return {
        **{key: summary(v) | {"each": v} for key, v in scores.items()},
        "train_nll": mean([cell["train_nll"] for cell in model_cells]),
        "seeds": [cell["seed"] for cell in model_cells],
    }


def infinity_note(rows: Sequence[Sequence[str]]) -> str:
    """What ∞ means, where it stands in a table."""
    return "∞: some right answer had the probability 0 in single precision." if "∞" in str(rows) else ""
