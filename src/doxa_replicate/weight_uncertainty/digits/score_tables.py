"""Scores as several tables hold them: over seeds, and with a word about those that are infinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.weight_uncertainty.digits.trainings.judging import Cell


def score_row(model_cells: Sequence[Cell], on_the_way: str | None = None) -> dict[str, Any]:
    """The scores of a net, mean and standard error over seeds; `on_the_way` names an earlier state of the cells."""
    states = model_cells if on_the_way is None else [cell[on_the_way] for cell in model_cells]
    scores = {key: [state["test"][key] for state in states] for key in ("error", "nll", "ece", "brier")}
    scores["error_as_run"] = [state["error_as_run"] for state in states]
    row: dict[str, Any] = {key: summary(v) | {"each": v} for key, v in scores.items()}
    if on_the_way is None:
        row["train_nll"] = mean([cell["train_nll"] for cell in model_cells])
        if "scale" in model_cells[0]:
            row["scale"] = mean([cell["scale"] for cell in model_cells])
    return row | {"epochs": mean([state["epoch"] for state in states]), "seeds": [cell["seed"] for cell in model_cells]}


def infinity_note(rows: Sequence[Sequence[str]]) -> str:
    """What ∞ means, where it stands in a table."""
    return "∞: some right answer had the probability 0 in single precision." if "∞" in str(rows) else ""
