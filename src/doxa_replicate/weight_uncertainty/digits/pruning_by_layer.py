"""Figure 21: from which layers the weights go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.columns import AS_RUN, AS_WRITTEN
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import mean
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import paired
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.trainings.judging import FRACTIONS, Cell
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

LAYER_NAMES = ("first", "second", "output")
# Shares pruned of the first, second and output layer of the authors' net of 1,200 units, in per cent.
DOCUMENT_SHARES = {0.5: (52.0, 49.0, 12.2), 0.75: (71.9, 77.5, 27.5), 0.9: (85.7, 93.2, 45.3), 0.95: (91.7, 97.5, 56.4)}
OUTPUT_PRUNED_LEAST = Claim(
    "C-WU-19",
    "The output layer has the highest signal-to-noise ratio, and is pruned least",
    "mean |mean| / scale of the output layer less that of each other layer: above 0; its share pruned at 75 % and at "
    "95 % less that of each other layer: below 0",
)


def run(options: ReplicationOptions) -> Numbers:
    gaussian_cells = {column: each["gaussian"] for column, each in cells_by_column(options, ["gaussian"]).items()}
    seeds = [cell["seed"] for cell in gaussian_cells[AS_RUN]]
    return {
        "settings": {"units": 1200, "prior": "N(0, 1)", **training_settings(options, [("gaussian", 1200)])},
        "seeds": seeds,
        "fractions": FRACTIONS,
        "columns": {column: layer_statistics(each) for column, each in gaussian_cells.items()},
        "halfway_by_column": {
            column: pruned_by_layer([cell["halfway"]["pruned"] for cell in each])
            for column, each in gaussian_cells.items()
        },
        "verdicts": [_judge(each, seeds, column) for column, each in gaussian_cells.items()],
    }


def _judge(model_cells: Sequence[Cell], seeds: Sequence[int], column: str) -> Verdict:
    slots = list(model_cells[0]["weights"]["layers"])
    signal = {slot: [cell["weights"]["layers"][slot]["signal_to_noise"] for cell in model_cells] for slot in slots}
    evidence = {
        f"signal-to-noise, output less {layer}": paired(signal[slots[-1]], signal[slot], above=0.0)
        for layer, slot in zip(LAYER_NAMES[:-1], slots, strict=False)
    }
    for fraction in (0.75, 0.95):
        k = FRACTIONS.index(fraction)
        shares = {slot: [cell["pruned"]["shares"][slot][k] for cell in model_cells] for slot in slots}
        evidence |= {
            f"{100 * fraction:g} % pruned, output less {layer}": paired(shares[slots[-1]], shares[slot], below=0.0)
            for layer, slot in zip(LAYER_NAMES[:-1], slots, strict=False)
        }
    return OUTPUT_PRUNED_LEAST.decide(evidence, seeds, column, "prior N(0, 1), 1,200 units")


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
    halfway = numbers.get("halfway_by_column") or {AS_WRITTEN: numbers["halfway"]}
    halfway_charts = [_halfway_chart(column, shares, numbers["fractions"]) for column, shares in halfway.items()]
    table = ResultTable("By layer", headers, rows, text_columns=2)
    return [*charts, *halfway_charts, *_beside_document(numbers), table]


def _halfway_chart(column: str, by_layer: Mapping[str, Sequence[float]], fractions: Sequence[float]) -> Chart:
    per_cent = [100 * f for f in fractions]
    lines = [ChartLine(f"{layer} layer", per_cent, [100 * v for v in shares]) for layer, shares in by_layer.items()]
    title = f"What layers lose after half of the epochs, {column}"
    return Chart(title, "The same nets on their way.", "pruned of all, %", "pruned of the layer, %", lines)


def _beside_document(numbers: Mapping[str, Any]) -> list[ResultTable]:
    """The shares of the authors' net, and of ours."""
    if AS_RUN not in numbers["columns"]:
        return []
    shares, fractions = numbers["columns"][AS_RUN]["shares"], list(numbers["fractions"])
    rows = [
        [f"{100 * fraction:g} %", who, *(f"{value:.1f}" for value in values)]
        for fraction, document in DOCUMENT_SHARES.items()
        for who, values in (
            ("document", document),
            ("here", [100 * shares[layer][fractions.index(fraction)] for layer in LAYER_NAMES]),
        )
    ]
    headers = ("pruned of all", "", *(f"{layer} layer, %" for layer in LAYER_NAMES))
    return [ResultTable("Beside the authors' net, as run", headers, rows, text_columns=2)]


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
