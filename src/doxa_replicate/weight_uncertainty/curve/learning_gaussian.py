"""Figure 12: learning with a single Gaussian as prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import curves
from doxa_replicate.weight_uncertainty.curve.measures import average


def run(ask: Ask) -> Numbers:
    return {"settings": trainings.settings(ask), "seeds": trainings.seeds(ask), **learning(ask, "gaussian")}


def learning(ask: Ask, fleet: str) -> dict[str, Any]:
    """Free energy and RMSE against epochs by prior, where they end, and when they are nearly there."""
    found = trainings.records(ask, fleet)
    return {
        "free_energy": {prior: average([r["free_energy"] for r in rows]) for prior, rows in found.items()},
        "rmse": {prior: average([r["rmse"] for r in rows]) for prior, rows in found.items()},
        "final": {
            prior: summary(v) for prior, rows in found.items() for v in [[r["final"]["free_energy"] for r in rows]]
        },
        "epochs": {prior: mean([r["epochs_to_5_percent"] for r in rows]) for prior, rows in found.items()},
        "epochs_of_95_percent": {p: mean([r["epochs_of_95_percent"] for r in rows]) for p, rows in found.items()},
        "rmse_lowest": {
            prior: min(average([r["rmse"] for r in rows]), key=lambda p: p[1]) for prior, rows in found.items()
        },
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [[prior, *ends(numbers, prior)] for prior in numbers["final"]]
    return [*learning_charts(numbers, "−log σ = {}"), Table("Where they end", ("−log σ", *ENDS), rows)]


ENDS = (
    "final free energy",
    "epochs to within 5 % of it",
    "to 95 % of the way",
    "lowest RMSE",
    "at epoch",
    "at the end",
)


def ends(numbers: Mapping[str, Any], prior: str) -> list[str]:
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


def learning_charts(numbers: Mapping[str, Any], name: str) -> Sequence[Shown]:
    final, last = numbers["final"], {prior: points[-1][1] for prior, points in numbers["rmse"].items()}
    low, high = min(final, key=lambda p: final[p]["mean"]), max(final, key=lambda p: final[p]["mean"])
    best = min(last, key=lambda p: last[p])
    energy = {name.format(prior): points for prior, points in numbers["free_energy"].items()}
    rmse = {name.format(prior): points for prior, points in numbers["rmse"].items()}
    ended = f"Lowest at the end: {final[low]['mean']:,.0f} ({low}); highest: {final[high]['mean']:,.0f} ({high})."
    return [
        curves("Free energy", ended, "nats", energy, log_y=True),
        curves("RMSE", f"Lowest at the end: {last[best]:.3f} ({best}).", "RMSE on [−0.5, 1.5]", rmse, log_y=True),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-12",
    place=10,
    group="regression",
    title="Free energy and RMSE while learning, single Gaussian priors",
    rows=("WU-35",),
    run=run,
    reference={
        "document": "the narrower the prior the sooner it converges; all end alike; the RMSE falls, then rises; "
        "no numbers are printed"
    },
    left_open=(
        "the learning rate: of 1e-3, 3e-3, 1e-2 and 3e-2 the one that ends at the lowest free energy on a curve of its "
        "own; it was 1e-2",
        "on which points the RMSE is taken: those of evaluation, by the mean of 20 draws",
    ),
    takes=("some seconds", "a minute on a GPU"),
    show=show,
)
