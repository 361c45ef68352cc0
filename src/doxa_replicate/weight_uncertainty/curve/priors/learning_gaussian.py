"""Figure 12: learning with a single Gaussian as prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve.losses import LOSSES
from doxa_replicate.weight_uncertainty.curve.priors.learning_curves import (
    FINAL_HEADERS,
    final_cells,
    learning_charts,
    learning_curves,
)
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.choice import at_edge, tried_recipes
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    COLUMNS,
    KL_AS_RUN,
    SEEDS_AS_RUN,
    WIDE_SCALES,
    seeds,
)

# The authors' first run of each prior: mean over its last 200 epochs, and RMSE over its last ten readings.
AUTHORS_LAST_200 = {"0": -126.6, "1": -130.4, "2": -119.2}
AUTHORS_RMSE = {"0": 0.605, "1": 0.316, "2": 0.415}
AUTHORS_SCALES = {"0": (0.23, 0.98, 0.24), "1": (0.18, 0.366, 0.145), "2": (0.11, 0.135, 0.075)}


def run(options: ReplicationOptions) -> Numbers:
    return {
        "settings": settings_by_column(options) | {"at_edge": at_edge(options)},
        "seeds": seeds(options),
        "columns": {column: learning_curves(options, column, "gaussian") for column in COLUMNS},
        "tried": tried_recipes(options),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    for column, numbers in columns(result).items():
        rows = [[prior, *final_cells(numbers, prior)] for prior in numbers["rmse"]]
        elements += learning_charts(numbers, column, "−log σ = {}")
        elements.append(ResultTable(f"Where they end, {column}", ("−log σ", *FINAL_HEADERS), rows))
    by_column = columns(result)
    if AS_RUN in by_column:
        elements += [_authors_table(by_column[AS_RUN]), _choice_table(result["numbers"]["tried"])]
    return elements


def _authors_table(numbers: Mapping[str, Any]) -> ResultTable:
    """The authors' first runs beside ours."""
    rows = [
        [
            prior,
            f"{AUTHORS_LAST_200[prior]:.1f}",
            f"{numbers['last_200'][prior]['mean']:.1f}",
            f"{AUTHORS_RMSE[prior]:.3f}",
            f"{numbers['rmse_end'][prior]:.3f}",
            " / ".join(f"{scale:.2f}" for scale in AUTHORS_SCALES[prior]),
            " / ".join(f"{scale:.2f}" for scale in numbers["scales"][prior]),
        ]
        for prior in map(str, WIDE_SCALES)
    ]
    headers = (
        *("−log σ", "their last minibatch", "here", "their RMSE", "here"),
        *("their mean scale by layer", "here"),
    )
    caption = (
        "One run of theirs, mean over seeds here: the last 200 epochs, and the last ten RMSEs. The middle layer is "
        "back at its prior."
    )
    return ResultTable("Beside the authors' runs", headers, rows, caption=caption)


def _choice_table(tried: Sequence[Mapping[str, Any]]) -> ResultTable:
    rows = [
        [
            f"{t['rate']:g}",
            "halving" if t["geometric"] else "even",
            *("∞" if t[key] is None else f"{t[key]:,.{places}f}" for key, places in (("free_energy", 0), ("nll", 3))),
        ]
        for t in tried
    ]
    headers = ("rate", "split of the KL", "free energy", "NLL of fresh points")
    caption = (
        "On curves of their own, prior N(0, e⁻²). As written takes the lowest "
        f"{LOSSES['free_energy']} with even shares, chosen the lowest NLL."
    )
    return ResultTable("What was tried", headers, rows, text_columns=2, caption=caption)


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-12",
    order=10,
    group="regression",
    title="Free energy and RMSE while learning, single Gaussian priors",
    requirements=("WU-35",),
    run=run,
    reference={
        "document": "the narrower the prior the sooner it converges; all end alike; the RMSE falls, then rises; "
        "no numbers are printed",
        "note": "the ELBO that is drawn is the loss of an epoch's last minibatch",
    },
    left_open=(
        "the learning rate: a constant 1e-3 as run; as written the one of five that ends at the lowest free energy on "
        "curves of its own; chosen, with the split of the KL, the one with the lowest NLL of fresh points amid the "
        "data",
        "on which points the RMSE is taken: as run 128 on [−0.2, 1.4], by ten draws; as written and chosen 1,000 on "
        "[−0.5, 1.5], by twenty",
    ),
    departures={"full": (SEEDS_AS_RUN, KL_AS_RUN)},
    durations=("some seconds", "three minutes on a GPU"),
    show=show,
)
