"""Figure 6: the layout of the original paper's figure, from a belief of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import belief_records, settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.ensembles import ensemble_records, ensemble_settings
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, seeds

PRIOR_NAME = "1, 6"


def run(options: ReplicationOptions) -> Numbers:
    return {
        "settings": settings_by_column(options)
        | {"prior": f"scale mixture, −log σ₁, σ₂ = {PRIOR_NAME}, π = 0.5"}
        | {f"ensembles {column}": ensemble_settings(options, column) for column in COLUMNS[:2]},
        "seeds": seeds(options)[:1],
        "columns": {
            column: {
                "belief": band_fields(belief_records(options, column, "mixture")[PRIOR_NAME][0]),
                "plain": band_fields(ensemble_records(options, column, "plain")[0]),
            }
            for column in COLUMNS
        },
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [
        band_chart(f"{title}, {column}", spread_caption(numbers[name]), numbers[name], "median")
        for column, numbers in columns(result).items()
        for name, title in (("belief", "Bayes by Backprop"), ("plain", "Plain nets"))
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
