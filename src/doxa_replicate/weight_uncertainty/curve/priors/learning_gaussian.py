"""Figure 12: learning with a single Gaussian as prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.priors.learning_curves import (
    FINAL_HEADERS,
    final_cells,
    learning_charts,
    learning_curves,
)


def run(options: ReplicationOptions) -> Numbers:
    return {
        "settings": trainings.common_settings(options),
        "seeds": trainings.seeds(options),
        **learning_curves(options, "gaussian"),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [[prior, *final_cells(numbers, prior)] for prior in numbers["final"]]
    return [*learning_charts(numbers, "−log σ = {}"), ResultTable("Where they end", ("−log σ", *FINAL_HEADERS), rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-12",
    order=10,
    group="regression",
    title="Free energy and RMSE while learning, single Gaussian priors",
    requirements=("WU-35",),
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
    durations=("some seconds", "a minute on a GPU"),
    show=show,
)
