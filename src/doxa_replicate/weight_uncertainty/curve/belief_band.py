"""Figure 6: the layout of the original paper's figure, from a belief of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption

PRIOR_NAME = "1, 6"


def run(options: ReplicationOptions) -> Numbers:
    beliefs = trainings.belief_records(options, "mixture")[PRIOR_NAME]
    plain = trainings.ensemble_records(options, "plain")
    return {
        "settings": trainings.common_settings(options)
        | {
            "prior": f"scale mixture, −log σ₁, σ₂ = {PRIOR_NAME}, π = 0.5",
            "plain nets": f"Adam, {trainings.PLAIN_RATE:g}, halved alike",
        },
        "seeds": trainings.seeds(options)[:1],
        "belief": band_fields(beliefs[0]),
        "plain": band_fields(plain[0]),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    return [
        band_chart("Bayes by Backprop", spread_caption(numbers["belief"]), numbers["belief"], "median"),
        band_chart("Plain nets", spread_caption(numbers["plain"]), numbers["plain"], "median"),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-6",
    order=4,
    group="regression",
    title="The original paper's picture: medians and the ranges about them",
    requirements=("WU-29",),
    run=run,
    reference={"document": "the picture of Blundell et al. (2015), figure 5, reprinted; no numbers are printed"},
    left_open=("which ranges are drawn: the middle half and the middle 90 %",),
    durations=("some seconds", "three minutes on a GPU"),
    show=show,
)
