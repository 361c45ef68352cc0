"""Figure 6: the layout of the original paper's figure, from a belief of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.show import Shown
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, drawn, spread_says

PRIORS = "1, 6"


def run(ask: Ask) -> Numbers:
    beliefs = trainings.records(ask, "mixture")[PRIORS]
    plain = trainings.ensembles(ask, "plain")
    return {
        "settings": trainings.settings(ask)
        | {
            "prior": f"scale mixture, −log σ₁, σ₂ = {PRIORS}, π = 0.5",
            "plain nets": f"Adam, {trainings.PLAIN_RATE:g}, halved alike",
        },
        "seeds": trainings.seeds(ask)[:1],
        "belief": drawn(beliefs[0]),
        "plain": drawn(plain[0]),
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    return [
        band_chart("Bayes by Backprop", spread_says(numbers["belief"]), numbers["belief"], "median"),
        band_chart("Plain nets", spread_says(numbers["plain"]), numbers["plain"], "median"),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-6",
    place=4,
    group="regression",
    title="The original paper's picture: medians and the ranges about them",
    rows=("WU-29",),
    run=run,
    reference={"document": "the picture of Blundell et al. (2015), figure 5, reprinted; no numbers are printed"},
    left_open=("which ranges are drawn: the middle half and the middle 90 %",),
    takes=("some seconds", "three minutes on a GPU"),
    show=show,
)
