"""Figure 16: the weights of a plain net, of one with dropout, and of a belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.cells import Cell
from doxa_replicate.weight_uncertainty.digits.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.models import MODELS

MODEL_NAMES = ("plain", "dropout", "gaussian")


def run(options: ReplicationOptions) -> Numbers:
    columns = cells_by_column(options, MODEL_NAMES)
    return {
        "settings": {"units": 1200, "weights": "one draw, biases aside; of point estimates as they were trained"},
        "seeds": [cell["seed"] for cell in columns["as written"][MODEL_NAMES[0]]],
        "columns": {column: histograms(cells_by_model) for column, cells_by_model in columns.items()},
    }


def histograms(cells_by_model: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    """Densities of the first seed's weights, and spreads over seeds."""
    std = {name: [cell["weights"]["std"] for cell in model_cells] for name, model_cells in cells_by_model.items()}
    return {
        "density": {name: model_cells[0]["weights"]["density"] for name, model_cells in cells_by_model.items()},
        "edges": next(iter(cells_by_model.values()))[0]["weights"]["edges"],
        "std": {name: summary(v) for name, v in std.items()},
        "std_of_means": {
            name: mean([c["weights"]["std_of_means"] for c in model_cells])
            for name, model_cells in cells_by_model.items()
        },
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return histogram_elements(result["numbers"]["columns"])


def histogram_elements(columns: Mapping[str, Any]) -> Sequence[PageElement]:
    rows = [
        [MODELS[name].title, column, f"{spread['mean']:.4f}", f"{statistics['std_of_means'][name]:.4f}"]
        for column, statistics in columns.items()
        for name, spread in statistics["std"].items()
    ]
    return [
        *(_chart(column, statistics) for column, statistics in columns.items()),
        ResultTable(
            "Standard deviations", ("net", "trained", "of drawn weights", "of their means"), rows, text_columns=2
        ),
    ]


def _chart(column: str, statistics: Mapping[str, Any]) -> Chart:
    low, high, pieces = statistics["edges"]
    edges = np.linspace(low, high, pieces + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    lines = [
        ChartLine(MODELS[name].title, middles, [v if v > 0 else None for v in d])
        for name, d in statistics["density"].items()
    ]
    widest = max(statistics["std"], key=lambda name: statistics["std"][name]["mean"])
    caption = f"The broadest are those of: {MODELS[widest].title}. The density is on a log axis."
    return Chart(f"Weights, {column}", caption, "weight", "density", lines, log_y=True)


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
