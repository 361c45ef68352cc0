"""What the two figures of learning show alike: free energy and RMSE against epochs, and where they end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doxa_replicate.columns import AS_RUN
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.curve.bands import curves_chart
from doxa_replicate.weight_uncertainty.curve.losses import (
    LOSS_OF_COLUMN,
    LOSSES,
    loss_ends,
    mean_losses,
    thinned,
)
from doxa_replicate.weight_uncertainty.curve.measures import mean_curve
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import belief_records

FINAL_HEADERS = (
    *("epochs", "last minibatch at the end", "free energy at the end"),
    *("epochs to within 5 % of it", "to 95 % of the way"),
    *("lowest RMSE", "at epoch", "at the end", "its variance"),
)


def learning_curves(options: ReplicationOptions, column: str, fleet: str) -> dict[str, Any]:
    """Losses and RMSE against epochs by prior, where they end, and when the column's own loss is nearly there."""
    records, loss = belief_records(options, column, fleet), LOSS_OF_COLUMN[column]
    rmse = {prior: mean_curve([r["rmse"] for r in rows]) for prior, rows in records.items()}
    return {
        **{name: mean_losses(records, name) for name in drawn_losses(column)},
        "ends": {name: loss_ends(records, name) for name in LOSSES},
        "last_200": loss_ends(records, "last_loss", "end_of_200"),
        "rmse": {prior: thinned(points) for prior, points in rmse.items()},
        "trained": {prior: rows[0]["epochs"] for prior, rows in records.items()},
        "epochs": {p: mean([r[loss]["epochs_to_5_percent"] for r in rows]) for p, rows in records.items()},
        "epochs_of_95_percent": {
            p: mean([r[loss]["epochs_of_95_percent"] for r in rows]) for p, rows in records.items()
        },
        "rmse_lowest": {prior: min(points, key=lambda p: p[1]) for prior, points in rmse.items()},
        "rmse_end": {prior: mean([r["rmse_end"] for r in rows]) for prior, rows in records.items()},
        "rmse_variance": {
            prior: summary(values) | {"each": values}
            for prior, rows in records.items()
            for values in [[r["rmse_variance"] for r in rows]]
        },
        "scales": {
            prior: [mean(layer) for layer in zip(*(r["scales"] for r in rows), strict=True)]
            for prior, rows in records.items()
        },
    }


def final_cells(numbers: Mapping[str, Any], prior: str) -> list[str]:
    """Where a prior's curves end, and when they are nearly there; what an earlier result does not hold is a dash."""
    epoch, lowest = numbers["rmse_lowest"][prior]
    has_ends = "ends" in numbers
    return [
        f"{numbers['trained'][prior]:,}" if has_ends else "–",
        f"{numbers['ends']['last_loss'][prior]['mean']:,.1f}" if has_ends else "–",
        f"{_finals(numbers, 'free_energy')[prior]['mean']:,.0f}",
        f"{numbers['epochs'][prior]:.0f}",
        f"{numbers['epochs_of_95_percent'][prior]:.0f}",
        f"{lowest:.3f}",
        f"{epoch:.0f}",
        f"{_rmse_ends(numbers)[prior]:.3f}",
        f"{numbers['rmse_variance'][prior]['mean']:.2g}" if has_ends else "–",
    ]


def learning_charts(numbers: Mapping[str, Any], column: str, name_format: str) -> list[PageElement]:
    """The losses that are drawn of a column, and the RMSE."""
    losses = drawn_losses(column) if "ends" in numbers else ["free_energy"]
    final_rmse = _rmse_ends(numbers)
    best = min(final_rmse, key=lambda p: final_rmse[p])
    rmse = {name_format.format(prior): points for prior, points in numbers["rmse"].items()}
    caption = f"Lowest at the end: {final_rmse[best]:.3f} ({best})."
    return [
        *(_loss_chart(numbers, column, loss, name_format) for loss in losses),
        curves_chart(f"RMSE, {column}", caption, "RMSE", rmse, log_y=True),
    ]


def _loss_chart(numbers: Mapping[str, Any], column: str, loss: str, name_format: str) -> PageElement:
    final = _finals(numbers, loss)
    low, high = min(final, key=lambda p: final[p]["mean"]), max(final, key=lambda p: final[p]["mean"])
    curves = {name_format.format(prior): points for prior, points in numbers[loss].items()}
    caption = f"Lowest at the end: {final[low]['mean']:,.0f} ({low}); highest: {final[high]['mean']:,.0f} ({high})."
    is_positive = all(y > 0 for points in curves.values() for _, y in points)
    return curves_chart(f"{LOSSES[loss].capitalize()}, {column}", caption, "nats", curves, log_y=is_positive)


def drawn_losses(column: str) -> list[str]:
    """The loss that a column's claims are about, and as run the free energy beside it."""
    return list(LOSSES) if column == AS_RUN else [LOSS_OF_COLUMN[column]]


def _finals(numbers: Mapping[str, Any], loss: str) -> Mapping[str, Any]:
    finals: Mapping[str, Any] = numbers["ends"][loss] if "ends" in numbers else numbers["final"]
    return finals


def _rmse_ends(numbers: Mapping[str, Any]) -> Mapping[str, float]:
    ends: Mapping[str, float] = numbers.get("rmse_end") or {p: v[-1][1] for p, v in numbers["rmse"].items()}
    return ends
