"""Figure 17: the weights that three priors lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.show import PageElement
from doxa_replicate.verdicts import Evidence
from doxa_replicate.weight_uncertainty.digits.histograms import histogram_elements, histograms
from doxa_replicate.weight_uncertainty.digits.trainings.cells import cells, cells_as_run
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

NAMES = ("gaussian", "mixture", "laplace")
DOCUMENT_PEAKS = {"gaussian": 4.8, "laplace": 5.3, "mixture": 15.8}  # read off the authors' own figure
MAX_MIXTURE_RATIO, LAPLACE_TOLERANCE = 0.5, 0.25
MIXTURE_NARROWER = Claim(
    "C-WU-14",
    "With a scale mixture the weights are much narrower than with a Gaussian; with Laplace they are alike",
    f"inter-quartile range of drawn weights over the Gaussian's, seed by seed: the mixture's below "
    f"{MAX_MIXTURE_RATIO:g}, Laplace's between {1 - LAPLACE_TOLERANCE:g} and {1 + LAPLACE_TOLERANCE:g}",
)


def run(options: ReplicationOptions) -> Numbers:
    columns = {
        AS_RUN: {name: cells_as_run(options, name, 1200) for name in NAMES},
        AS_WRITTEN: {name: cells(options, name, 1200) for name in NAMES},
    }
    seeds = [cell["seed"] for cell in columns[AS_RUN]["gaussian"]]
    statistics = {column: histograms(cells_by_prior) for column, cells_by_prior in columns.items()}
    return {
        "settings": {
            "units": 1200,
            "weights": "ten draws for kernel densities, else one; biases aside",
            **training_settings(options),
        },
        "seeds": seeds,
        "columns": statistics,
        "verdicts": [_judge(each, seeds, column) for column, each in statistics.items()],
    }


def _judge(statistics: Mapping[str, Any], seeds: Sequence[int], column: str) -> Verdict:
    spreads = {name: statistics["iqr"][name]["each"] for name in NAMES}
    ratios = {name: [a / b for a, b in zip(spreads[name], spreads["gaussian"], strict=True)] for name in NAMES[1:]}
    return MIXTURE_NARROWER.decide(
        {
            "mixture": Evidence(ratios["mixture"], below=MAX_MIXTURE_RATIO),
            "Laplace": Evidence(ratios["laplace"], above=1 - LAPLACE_TOLERANCE, below=1 + LAPLACE_TOLERANCE),
        },
        seeds,
        column,
        "over the Gaussian's",
    )


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return histogram_elements(result["numbers"]["columns"], DOCUMENT_PEAKS)


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-17",
    order=23,
    group="mnist",
    title="Histograms of a belief's weights under three priors",
    requirements=("WU-50",),
    run=run,
    claims=(MIXTURE_NARROWER,),
    reference={
        "document": "the mixture's are much narrower, Laplace's like the Gaussian's; no numbers are printed",
        "highest density, read off the authors' figure": DOCUMENT_PEAKS,
        "note": "of the authors' nets of 400 units the inter-quartile ranges are 0.134 and 0.043, the mixture's 0.32 "
        "of the Gaussian's; the standard deviations, which the mixture's wide part makes, 0.109 and 0.071, 0.65 of it",
    },
    left_open=(
        "what is compared: inter-quartile ranges, since a spike with wide tails has a large standard deviation",
    ),
    durations=("some seconds", "half an hour on a GPU, its nets shared with table 3"),
    show=show,
)
