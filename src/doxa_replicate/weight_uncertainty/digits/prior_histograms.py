"""Figure 17: the weights that three priors lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.show import Shown
from doxa_replicate.weight_uncertainty.digits.cells import cells
from doxa_replicate.weight_uncertainty.digits.weight_histograms import histograms, histograms_shown

NAMES = ("gaussian", "mixture", "laplace")
HALF, NEAR = 0.5, 0.25
NARROWER = Claim(
    "C-WU-14",
    "With a scale mixture the weights are much narrower than with a Gaussian; with Laplace they are alike",
    f"standard deviation of drawn weights: mixture below {HALF:g} of the Gaussian's, Laplace within {100 * NEAR:g} % "
    "of it",
)


def run(ask: Ask) -> Numbers:
    trained = {name: cells(ask, name, 1200) for name in NAMES}
    found, seeds = histograms(trained), [cell["seed"] for cell in trained["gaussian"]]
    std = {name: of["mean"] for name, of in found["std"].items()}
    mixture, laplace = std["mixture"] / std["gaussian"], std["laplace"] / std["gaussian"]
    return {
        "settings": {"units": 1200, "weights": "one draw, biases aside"},
        "seeds": seeds,
        "columns": {"as written": found},
        "verdicts": [
            NARROWER.judged(
                mixture < HALF and abs(laplace - 1) <= NEAR,
                {"mixture": mixture, "Laplace": laplace},
                None,
                seeds,
                "as written; over the Gaussian's",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    return histograms_shown(found["numbers"]["columns"])


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-17",
    place=23,
    group="mnist",
    title="Histograms of a belief's weights under three priors",
    rows=("WU-50",),
    run=run,
    claims=(NARROWER,),
    reference={"document": "the mixture's are much narrower, Laplace's like the Gaussian's; no numbers are printed"},
    takes=("some seconds", "eighteen minutes on a GPU"),
    show=show,
)
