"""Figure 16: the weights of a plain net, of one with dropout, and of a belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.digits.histograms import histogram_elements, histograms
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.trainings.models import COMPARED_MODELS


def run(options: ReplicationOptions) -> Numbers:
    columns = cells_by_column(options, COMPARED_MODELS)
    return {
        "settings": {"units": 1200, "weights": "one draw, biases aside; of point estimates as they were trained"},
        "seeds": [cell["seed"] for cell in columns["as written"][COMPARED_MODELS[0]]],
        "columns": {column: histograms(cells_by_model) for column, cells_by_model in columns.items()},
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return histogram_elements(result["numbers"]["columns"])


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-16",
    order=22,
    group="mnist",
    title="Histograms of trained weights: plain, dropout, belief",
    requirements=("WU-49",),
    run=run,
    reference={"document": "the belief's are the broadest, as in the original paper; no numbers are printed"},
    left_open=(
        "what a belief's weights are: one draw of all of them; their means stand in the table",
        "what those of dropout are: as they were learned, none of them dropped",
    ),
    durations=("some seconds", "22 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
