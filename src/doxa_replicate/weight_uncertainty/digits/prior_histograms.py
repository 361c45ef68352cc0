"""Figure 17: the weights that three priors lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.digits.histograms import histogram_elements, histograms
from doxa_replicate.weight_uncertainty.digits.trainings.cells import cells

NAMES = ("gaussian", "mixture", "laplace")
MAX_MIXTURE_RATIO, LAPLACE_TOLERANCE = 0.5, 0.25
MIXTURE_NARROWER = Claim(
    "C-WU-14",
    "With a scale mixture the weights are much narrower than with a Gaussian; with Laplace they are alike",
    f"standard deviation of drawn weights: mixture below {MAX_MIXTURE_RATIO:g} of the Gaussian's, Laplace within "
    f"{100 * LAPLACE_TOLERANCE:g} % "
    "of it",
)


def run(options: ReplicationOptions) -> Numbers:
    cells_by_prior = {name: cells(options, name, 1200) for name in NAMES}
    statistics, seeds = histograms(cells_by_prior), [cell["seed"] for cell in cells_by_prior["gaussian"]]
    std = {name: spread["mean"] for name, spread in statistics["std"].items()}
    mixture, laplace = std["mixture"] / std["gaussian"], std["laplace"] / std["gaussian"]
    return {
        "settings": {"units": 1200, "weights": "one draw, biases aside"},
        "seeds": seeds,
        "columns": {"as written": statistics},
        "verdicts": [
            MIXTURE_NARROWER.judge(
                mixture < MAX_MIXTURE_RATIO and abs(laplace - 1) <= LAPLACE_TOLERANCE,
                {"mixture": mixture, "Laplace": laplace},
                None,
                seeds,
                "as written; over the Gaussian's",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return histogram_elements(result["numbers"]["columns"])


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-17",
    order=23,
    group="mnist",
    title="Histograms of a belief's weights under three priors",
    requirements=("WU-50",),
    run=run,
    claims=(MIXTURE_NARROWER,),
    reference={"document": "the mixture's are much narrower, Laplace's like the Gaussian's; no numbers are printed"},
    durations=("some seconds", "eighteen minutes on a GPU"),
    show=show,
)
