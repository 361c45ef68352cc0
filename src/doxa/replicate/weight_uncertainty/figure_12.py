"""Figure 12: learning with a single Gaussian as prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa.replicate.contract import Artefact, Ask, Numbers
from doxa.replicate.show import Shown
from doxa.replicate.weight_uncertainty import regression
from doxa.replicate.weight_uncertainty.bands import curves
from doxa.replicate.weight_uncertainty.regression import average, error, mean


def run(ask: Ask) -> Numbers:
    return {"settings": regression.settings(ask), "seeds": regression.seeds(ask), **learning(ask, "gaussian")}


def learning(ask: Ask, fleet: str) -> dict[str, Any]:
    """Free energy and RMSE against epochs by prior, where they end, and when they are nearly there."""
    found = regression.records(ask, fleet)
    return {
        "free_energy": {prior: average([r["free_energy"] for r in rows]) for prior, rows in found.items()},
        "rmse": {prior: average([r["rmse"] for r in rows]) for prior, rows in found.items()},
        "final": {
            prior: {"mean": mean(v), "se": error(v)}
            for prior, rows in found.items()
            for v in [[r["final"]["free_energy"] for r in rows]]
        },
        "epochs": {prior: mean([r["epochs_to_5_percent"] for r in rows]) for prior, rows in found.items()},
        "epochs_of_95_percent": {p: mean([r["epochs_of_95_percent"] for r in rows]) for p, rows in found.items()},
        "rmse_lowest": {
            prior: min(average([r["rmse"] for r in rows]), key=lambda p: p[1]) for prior, rows in found.items()
        },
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    return learning_charts(found["numbers"], "−log σ = {}")


def learning_charts(numbers: Mapping[str, Any], name: str) -> Sequence[Shown]:
    ends = ", ".join(f"{of['mean']:,.0f} ({prior})" for prior, of in numbers["final"].items())
    soon = ", ".join(f"{epoch:.0f} ({prior})" for prior, epoch in numbers["epochs"].items())
    most = ", ".join(f"{epoch:.0f} ({prior})" for prior, epoch in numbers["epochs_of_95_percent"].items())
    lowest = ", ".join(
        f"{best:.3g} at {epoch:.0f}, {numbers['rmse'][prior][-1][1]:.3g} at the end ({prior})"
        for prior, (epoch, best) in numbers["rmse_lowest"].items()
    )
    energy = {name.format(prior): points for prior, points in numbers["free_energy"].items()}
    rmse = {name.format(prior): points for prior, points in numbers["rmse"].items()}
    return [
        curves(
            "Free energy",
            f"At the end {ends}; within 5 % of it after epochs {soon}; 95 % of the way there after {most}.",
            "nats",
            energy,
            log_y=True,
        ),
        curves("RMSE", f"Lowest {lowest}.", "RMSE on [−0.5, 1.5]", rmse, log_y=True),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-12",
    group="regression",
    title="Free energy and RMSE while learning, single Gaussian priors",
    rows=("WU-35",),
    run=run,
    reference={
        "document": "the narrower the prior the sooner it converges; all end alike; the RMSE falls, then rises; "
        "no numbers are printed"
    },
    left_open=("on which points the RMSE is taken: those of evaluation, by the mean of 20 draws",),
    takes=("some seconds", "a minute on a GPU"),
    show=show,
)
