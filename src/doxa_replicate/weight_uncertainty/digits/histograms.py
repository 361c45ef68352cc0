"""Densities of weights, as figures 16 and 17 show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.trainings.judging import Cell
from doxa_replicate.weight_uncertainty.digits.trainings.models import MODELS

SPREADS = ("std", "iqr")


def histograms(cells_by_model: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    """Densities of the first seed's weights, and spreads over seeds."""
    weights = {name: [cell["weights"] for cell in model_cells] for name, model_cells in cells_by_model.items()}
    return {
        "density": {name: each[0]["density"] for name, each in weights.items()},
        "edges": next(iter(weights.values()))[0]["edges"],
        "as_drawn": {name: each[0]["as drawn"] for name, each in weights.items()},
        **{
            spread: {
                name: summary([w[spread] for w in each]) | {"each": [w[spread] for w in each]}
                for name, each in weights.items()
            }
            for spread in SPREADS
        },
        "peak": {
            name: summary([w["as drawn"]["peak"] for w in each]) | {"each": [w["as drawn"]["peak"] for w in each]}
            for name, each in weights.items()
        },
        "std_of_means": {name: mean([w["std_of_means"] for w in each]) for name, each in weights.items()},
    }


def histogram_elements(columns: Mapping[str, Any], document_peaks: Mapping[str, float]) -> Sequence[PageElement]:
    rows = [
        [
            MODELS[name].title,
            column,
            f"{spread['mean']:.4f}",
            _mean_of(statistics, "iqr", name, 4),
            f"{statistics['std_of_means'][name]:.4f}",
            _mean_of(statistics, "peak", name, 1),
            f"{document_peaks[name]:.1f}" if name in document_peaks else "–",
        ]
        for column, statistics in columns.items()
        for name, spread in statistics["std"].items()
    ]
    headers = (
        *("net", "trained", "standard deviation", "inter-quartile range", "standard deviation of means"),
        *("highest density", "the document's"),
    )
    return [
        *(_chart_as_drawn(column, statistics) for column, statistics in columns.items() if "as_drawn" in statistics),
        *(_chart(column, statistics) for column, statistics in columns.items()),
        ResultTable("Spreads of drawn weights", headers, rows, text_columns=2),
    ]


def _mean_of(statistics: Mapping[str, Any], key: str, name: str, places: int) -> str:
    return f"{statistics[key][name]['mean']:.{places}f}" if key in statistics else "–"


def _chart_as_drawn(column: str, statistics: Mapping[str, Any]) -> Chart:
    lines = [
        ChartLine(MODELS[name].title, _middles(drawn["edges"]), drawn["density"])
        for name, drawn in statistics["as_drawn"].items()
    ]
    peaks = ", ".join(f"{MODELS[name].title} {drawn['peak']:.1f}" for name, drawn in statistics["as_drawn"].items())
    caption = f"Kernel densities of ten draws, within ±0.3. Highest: {peaks}."
    return Chart(f"As the document draws them, {column}", caption, "weight", "density", lines)


def _chart(column: str, statistics: Mapping[str, Any]) -> Chart:
    middles = _middles(statistics["edges"])
    lines = [
        ChartLine(MODELS[name].title, middles, [v if v > 0 else None for v in d])
        for name, d in statistics["density"].items()
    ]
    widest = max(statistics["std"], key=lambda name: statistics["std"][name]["mean"])
    caption = f"The broadest are those of: {MODELS[widest].title}. The density is on a log axis."
    return Chart(f"Weights, {column}", caption, "weight", "density", lines, log_y=True)


def _middles(edges: Sequence[float]) -> list[float]:
    low, high, pieces = edges
    borders = np.linspace(low, high, int(pieces) + 1)
    middles: list[float] = ((borders[1:] + borders[:-1]) / 2).tolist()
    return middles
