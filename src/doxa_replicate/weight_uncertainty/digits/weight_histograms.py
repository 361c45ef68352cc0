"""Figure 16: the weights of a plain net, of one with dropout, and of a belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_WRITTEN
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.digits.histograms import histogram_elements, histograms
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.trainings.models import COMPARED_MODELS
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

DOCUMENT_PEAKS = {"gaussian": 4.8, "dropout": 7.8, "plain": 10.9}  # read off the authors' own figure


def run(options: ReplicationOptions) -> Numbers:
    columns = cells_by_column(options, COMPARED_MODELS)
    return {
        "settings": {
            "units": 1200,
            "weights": "ten draws for kernel densities, else one; biases aside; of point estimates as trained",
            **training_settings(options, [(name, 1200) for name in COMPARED_MODELS]),
        },
        "seeds": [cell["seed"] for cell in columns[AS_WRITTEN][COMPARED_MODELS[0]]],
        "columns": {column: histograms(cells_by_model) for column, cells_by_model in columns.items()},
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return histogram_elements(result["numbers"]["columns"], DOCUMENT_PEAKS)


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-16",
    order=22,
    group="mnist",
    title="Histograms of trained weights: plain, dropout, belief",
    requirements=("WU-49",),
    run=run,
    reference={
        "document": "the belief's are the broadest, as in the original paper; no numbers are printed",
        "highest density, read off the authors' figure": DOCUMENT_PEAKS,
        "note": "kernel densities of ten draws of all weights, biases aside, cut off at ±0.3; nets of 600 epochs",
    },
    left_open=("what those of dropout are: as they were learned, none of them dropped",),
    durations=("some seconds", "half an hour on a GPU, its nets shared with table 3"),
    show=show,
)
