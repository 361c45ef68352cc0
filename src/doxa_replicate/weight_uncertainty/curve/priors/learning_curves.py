"""What the two figures of learning show alike: free energy and RMSE against epochs, and where they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import curves_chart
from doxa_replicate.weight_uncertainty.curve.measures import mean_curve

FINAL_HEADERS = (
    "final free energy",
    "epochs to within 5 % of it",
    "to 95 % of the way",
    "lowest RMSE",
    "at epoch",
    "at the end",
)


def learning_curves(options: ReplicationOptions, fleet: str) -> dict[str, Any]:
    """Free energy and RMSE against epochs by prior, where they end, and when they are nearly there."""
    records = trainings.belief_records(options, fleet)
    return {
        "free_energy": {prior: mean_curve([r["free_energy"] for r in rows]) for prior, rows in records.items()},
        "rmse": {prior: mean_curve([r["rmse"] for r in rows]) for prior, rows in records.items()},
        "final": {
            prior: summary(v) for prior, rows in records.items() for v in [[r["final"]["free_energy"] for r in rows]]
        },
        "epochs": {prior: mean([r["epochs_to_5_percent"] for r in rows]) for prior, rows in records.items()},
        "epochs_of_95_percent": {p: mean([r["epochs_of_95_percent"] for r in rows]) for p, rows in records.items()},
        "rmse_lowest": {
            prior: min(mean_curve([r["rmse"] for r in rows]), key=lambda p: p[1]) for prior, rows in records.items()
        },
    }


def final_cells(numbers: Mapping[str, Any], prior: str) -> list[str]:
    """Where a prior's curves end, and when they are nearly there."""
    epoch, lowest = numbers["rmse_lowest"][prior]
    return [
        f"{numbers['final'][prior]['mean']:,.0f}",
        f"{numbers['epochs'][prior]:.0f}",
        f"{numbers['epochs_of_95_percent'][prior]:.0f}",
        f"{lowest:.3f}",
        f"{epoch:.0f}",
        f"{numbers['rmse'][prior][-1][1]:.3f}",
    ]


def learning_charts(numbers: Mapping[str, Any], name_format: str) -> Sequence[PageElement]:
    final, final_rmse = numbers["final"], {prior: points[-1][1] for prior, points in numbers["rmse"].items()}
    low, high = min(final, key=lambda p: final[p]["mean"]), max(final, key=lambda p: final[p]["mean"])
    best = min(final_rmse, key=lambda p: final_rmse[p])
    energy = {name_format.format(prior): points for prior, points in numbers["free_energy"].items()}
    rmse = {name_format.format(prior): points for prior, points in numbers["rmse"].items()}
    energy_caption = (
        f"Lowest at the end: {final[low]['mean']:,.0f} ({low}); highest: {final[high]['mean']:,.0f} ({high})."
    )
    return [
        curves_chart("Free energy", energy_caption, "nats", energy, log_y=True),
        curves_chart(
            "RMSE", f"Lowest at the end: {final_rmse[best]:.3f} ({best}).", "RMSE on [−0.5, 1.5]", rmse, log_y=True
        ),
    ]
