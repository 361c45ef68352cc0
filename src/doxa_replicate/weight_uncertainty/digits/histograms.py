"""Histograms of weights, as figures 16 and 17 show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.trainings.cells import Cell
from doxa_replicate.weight_uncertainty.digits.trainings.models import MODELS


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
