"""Figure 16: the weights of a plain net, of one with dropout, and of a belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.digits.cells import Cell
from doxa_replicate.weight_uncertainty.digits.choice import columns
from doxa_replicate.weight_uncertainty.digits.models import MODELS

NAMES = ("plain", "dropout", "gaussian")


def run(ask: Ask) -> Numbers:
    found = columns(ask, NAMES)
    return {
        "settings": {"units": 1200, "weights": "one draw, biases aside; of point estimates as they were trained"},
        "seeds": [cell["seed"] for cell in found["as written"][NAMES[0]]],
        "columns": {column: histograms(own) for column, own in found.items()},
    }


def histograms(found: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    """Densities of the first seed's weights, and spreads over seeds."""
    std = {name: [cell["weights"]["std"] for cell in own] for name, own in found.items()}
    return {
        "density": {name: own[0]["weights"]["density"] for name, own in found.items()},
        "edges": next(iter(found.values()))[0]["weights"]["edges"],
        "std": {name: summary(v) for name, v in std.items()},
        "std_of_means": {name: mean([c["weights"]["std_of_means"] for c in own]) for name, own in found.items()},
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    return histograms_shown(found["numbers"]["columns"])


def histograms_shown(columns: Mapping[str, Any]) -> Sequence[Shown]:
    rows = [
        [MODELS[name].title, column, f"{of['mean']:.4f}", f"{own['std_of_means'][name]:.4f}"]
        for column, own in columns.items()
        for name, of in own["std"].items()
    ]
    return [
        *(_chart(column, own) for column, own in columns.items()),
        Table("Standard deviations", ("net", "trained", "of drawn weights", "of their means"), rows, words=2),
    ]


def _chart(column: str, own: Mapping[str, Any]) -> Chart:
    low, high, pieces = own["edges"]
    edges = np.linspace(low, high, pieces + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    lines = [Line(MODELS[name].title, middles, [v if v > 0 else None for v in d]) for name, d in own["density"].items()]
    widest = max(own["std"], key=lambda name: own["std"][name]["mean"])
    says = f"The broadest are those of: {MODELS[widest].title}. The density is on a log axis."
    return Chart(f"Weights, {column}", says, "weight", "density", lines, log_y=True)


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-16",
    place=22,
    group="mnist",
    title="Histograms of trained weights: plain, dropout, belief",
    rows=("WU-49",),
    run=run,
    reference={"document": "the belief's are the broadest, as in the original paper; no numbers are printed"},
    left_open=(
        "what a belief's weights are: one draw of all of them; their means stand in the table",
        "what those of dropout are: as they were learned, none of them dropped",
    ),
    takes=("some seconds", "22 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
