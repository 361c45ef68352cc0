"""Figure 21: from which layers the weights go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.trainings.cells import FRACTIONS, Cell, cells
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column

LAYER_NAMES = ("first", "second", "output")
OUTPUT_PRUNED_LEAST = Claim(
    "C-WU-19",
    "The output layer has the highest signal-to-noise ratio, and is pruned least",
    "mean |mean| / scale ranks the output layer first, and its share pruned is the lowest at 75 % and at 95 %",
)


def run(options: ReplicationOptions) -> Numbers:
    statistics_by_column = {
        column: layer_statistics(cells_by_model["gaussian"])
        for column, cells_by_model in cells_by_column(options, ["gaussian"]).items()
    }
    gaussian_cells = cells(options, "gaussian", 1200)
    seeds, as_written = [cell["seed"] for cell in gaussian_cells], statistics_by_column["as written"]
    signal_to_noise, shares = as_written["signal_to_noise"], as_written["shares"]
    least_pruned = [min(shares, key=lambda layer: shares[layer][FRACTIONS.index(f)]) for f in (0.75, 0.95)]
    return {
        "settings": {"units": 1200, "prior": "N(0, 1)"},
        "seeds": seeds,
        "fractions": FRACTIONS,
        "columns": statistics_by_column,
        "halfway": pruned_by_layer([cell["halfway"] for cell in gaussian_cells]),
        "verdicts": [
            OUTPUT_PRUNED_LEAST.judge(
                max(signal_to_noise, key=lambda layer: signal_to_noise[layer]) == "output"
                and all(layer == "output" for layer in least_pruned),
                {f"signal-to-noise, {layer}": v for layer, v in signal_to_noise.items()}
                | {f"pruned at 95 %, {layer}": v[FRACTIONS.index(0.95)] for layer, v in shares.items()},
                None,
                seeds,
                "as written, prior N(0, 1), 1,200 units",
            )
        ],
    }


def layer_statistics(model_cells: Sequence[Cell]) -> dict[str, Any]:
    """What is known of each layer, means over seeds; densities of the first."""
    slot_names = dict(zip(LAYER_NAMES, model_cells[0]["weights"]["layers"], strict=True))

    def layer_means(key: str) -> dict[str, float]:
        return {
            layer: mean([c["weights"]["layers"][name][key] for c in model_cells]) for layer, name in slot_names.items()
        }

    return {
        "shares": pruned_by_layer([c["pruned"] for c in model_cells]),
        "signal_to_noise": layer_means("signal_to_noise"),
        "std": layer_means("std"),
        "density": {layer: model_cells[0]["weights"]["layers"][name]["density"] for layer, name in slot_names.items()},
        "edges": model_cells[0]["weights"]["edges"],
    }


def pruned_by_layer(pruned: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """How much of each layer goes, for every share of all weights; means over seeds."""
    return {
        layer: [mean([pruning["shares"][name][k] for pruning in pruned]) for k in range(len(FRACTIONS))]
        for layer, name in zip(LAYER_NAMES, pruned[0]["shares"], strict=True)
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [
        [layer, column, f"{statistics['signal_to_noise'][layer]:.3f}", f"{statistics['std'][layer]:.4f}"]
        for column, statistics in numbers["columns"].items()
        for layer in statistics["shares"]
    ]
    headers = ("layer", "trained", "mean |mean| / scale", "standard deviation of drawn weights")
    charts = [
        chart
        for column, statistics in numbers["columns"].items()
        for chart in _charts(column, statistics, numbers["fractions"])
    ]
    per_cent = [100 * f for f in numbers["fractions"]]
    halfway_lines = [
        ChartLine(f"{layer} layer", per_cent, [100 * v for v in shares]) for layer, shares in numbers["halfway"].items()
    ]
    caption = "The same nets on their way, as written: 300 of 600 epochs."
    halfway_chart = Chart(
        "What layers lose after half of the epochs",
        caption,
        "pruned of all, %",
        "pruned of the layer, %",
        halfway_lines,
    )
    return [*charts, halfway_chart, ResultTable("By layer", headers, rows, text_columns=2)]


def _charts(column: str, statistics: Mapping[str, Any], fractions: Sequence[float]) -> list[Chart]:
    per_cent = [100 * f for f in fractions]
    low, high, pieces = statistics["edges"]
    edges = np.linspace(low, high, pieces + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    shares = [
        ChartLine(f"{layer} layer", per_cent, [100 * v for v in values])
        for layer, values in statistics["shares"].items()
    ]
    densities = [
        ChartLine(f"{layer} layer", middles, [v if v > 0 else None for v in values])
        for layer, values in statistics["density"].items()
    ]
    caption = "One ranking over all layers.", "One draw; the density is on a log axis."
    return [
        Chart(f"What layers lose, {column}", caption[0], "pruned of all, %", "pruned of the layer, %", shares),
        Chart(f"Weights by layer, {column}", caption[1], "weight", "density", densities, log_y=True),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-21",
    order=27,
    group="mnist",
    title="Pruning and weights, layer by layer",
    requirements=("WU-54",),
    run=run,
    claims=(OUTPUT_PRUNED_LEAST,),
    reference={"document": "the output layer has the highest signal-to-noise ratio and the broadest weights"},
    left_open=("after how many epochs: 600, and 300 of the same nets on their way",),
    durations=("some seconds", "15 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
