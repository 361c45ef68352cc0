"""Figure 16: the weights of a plain net, of one with dropout, and of a belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa.replicate.contract import Artefact, Ask, Numbers
from doxa.replicate.show import Chart, Line, Shown, Table
from doxa.replicate.weight_uncertainty.digit_cells import cells
from doxa.replicate.weight_uncertainty.digit_models import MODELS
from doxa.replicate.weight_uncertainty.regression import error, mean

NAMES = ("plain", "dropout", "gaussian")


def run(ask: Ask) -> Numbers:
    return {"settings": {"units": 1200, "weights": "one draw of a belief, biases aside"}, **histograms(ask, NAMES)}


def histograms(ask: Ask, names: Sequence[str]) -> dict[str, Any]:
    found = {name: cells(ask, name, 1200) for name in names}
    return {
        "seeds": [cell["seed"] for cell in found[names[0]]],
        "density": {name: own[0]["weights"]["density"] for name, own in found.items()},
        "edges": found[names[0]][0]["weights"]["edges"],
        "std": {
            name: {"mean": mean([c["weights"]["std"] for c in own]), "se": error([c["weights"]["std"] for c in own])}
            for name, own in found.items()
        },
        "std_of_means": {name: mean([c["weights"]["std_of_means"] for c in own]) for name, own in found.items()},
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    return histogram_charts(found["numbers"])


def histogram_charts(numbers: Mapping[str, Any]) -> Sequence[Shown]:
    low, high, pieces = numbers["edges"]
    edges = np.linspace(low, high, pieces + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    lines = [
        Line(MODELS[name].title, middles, [v if v > 0 else None for v in d]) for name, d in numbers["density"].items()
    ]
    rows = [
        [MODELS[name].title, f"{of['mean']:.4f}", f"{numbers['std_of_means'][name]:.4f}"]
        for name, of in numbers["std"].items()
    ]
    widest = max(numbers["std"], key=lambda name: numbers["std"][name]["mean"])
    says = f"The broadest are those of: {MODELS[widest].title}. The density's axis is logarithmic."
    return [
        Chart("Weights", says, "weight", "density", lines, log_y=True),
        Table("Standard deviations", ("net", "of drawn weights", "of their means"), rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-16",
    group="mnist",
    title="Histograms of trained weights: plain, dropout, belief",
    rows=("WU-49",),
    run=run,
    reference={"document": "the belief's are the broadest, as in the original paper; no numbers are printed"},
    left_open=(
        "what a belief's weights are: one draw of all of them; their means stand in the table",
        "what those of dropout are: as they were learned, none of them dropped",
    ),
    takes=("some seconds", "ten minutes on a GPU"),
    show=show,
)
