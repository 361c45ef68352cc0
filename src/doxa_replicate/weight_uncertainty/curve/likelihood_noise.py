"""Figure 8: how much noise the likelihood allows for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import summary
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, drawn, spread_says
from doxa_replicate.weight_uncertainty.curve.trainings import NOISE, PRIOR, Records


def sweep(ask: Ask) -> Records:
    """Records by the scale of the likelihood, all with the same prior."""
    fleets = {"0.01": "likelihood 0.01", f"{NOISE:g}": "gaussian", "1": "likelihood 1"}
    return {scale: trainings.records(ask, fleet)[f"{PRIOR}"] for scale, fleet in fleets.items()}


def run(ask: Ask) -> Numbers:
    found = sweep(ask)
    return {
        "settings": trainings.settings(ask) | {"likelihood": list(found), "prior": f"N(0, e⁻²ˣ), x = {PRIOR}"},
        "seeds": trainings.seeds(ask),
        "bands": {scale: drawn(rows[0]) for scale, rows in found.items()},
        "coverage": {
            scale: {key: summary([r["coverage"][key] for r in rows]) for key in ("functions", "with_noise")}
            for scale, rows in found.items()
        },
        "lppd": {
            scale: {key: summary([r[key] for r in rows]) for key in ("lppd", "lppd_inside")}
            for scale, rows in found.items()
        },
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [
        [
            scale,
            f"{100 * numbers['coverage'][scale]['functions']['mean']:.1f}",
            f"{100 * numbers['coverage'][scale]['with_noise']['mean']:.1f}",
            f"{numbers['lppd'][scale]['lppd_inside']['mean']:.2f}",
            f"{numbers['lppd'][scale]['lppd']['mean']:.2f}",
        ]
        for scale in numbers["bands"]
    ]
    heads = ("σ_ε", "in the 90 % of functions, %", "with noise, %", "lppd amid the data", "lppd everywhere")
    return [
        *(band_chart(f"σ_ε = {scale}", spread_says(own), own) for scale, own in numbers["bands"].items()),
        Table("Fresh points amid the data, and log predictive density", heads, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-8",
    place=6,
    group="regression",
    title="The curve believed with three scales of the likelihood's noise",
    rows=("WU-28", "WU-31"),
    run=run,
    reference={"document": "0.01 is overconfident, 1.0 fits poorly, 0.1 is taken; no numbers are printed"},
    left_open=("the prior of this sweep: N(0, e⁻²)",),
    takes=("some seconds", "a minute on a GPU"),
    show=show,
)
