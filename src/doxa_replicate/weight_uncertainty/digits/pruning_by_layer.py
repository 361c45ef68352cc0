"""Figure 21: from which layers the weights go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import mean
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.digits.cells import FRACTIONS, Cell, cells
from doxa_replicate.weight_uncertainty.digits.choice import columns

LAYERS = ("first", "second", "output")
OUTPUT = Claim(
    "C-WU-19",
    "The output layer has the highest signal-to-noise ratio, and is pruned least",
    "mean |mean| / scale ranks the output layer first, and its share pruned is the lowest at 75 % and at 95 %",
)


def run(ask: Ask) -> Numbers:
    found = {column: layers(own["gaussian"]) for column, own in columns(ask, ["gaussian"]).items()}
    trained = cells(ask, "gaussian", 1200)
    seeds, written = [cell["seed"] for cell in trained], found["as written"]
    ratio, shares = written["signal_to_noise"], written["shares"]
    least = [min(shares, key=lambda layer: shares[layer][FRACTIONS.index(f)]) for f in (0.75, 0.95)]
    return {
        "settings": {"units": 1200, "prior": "N(0, 1)"},
        "seeds": seeds,
        "fractions": FRACTIONS,
        "columns": found,
        "halfway": shares_of([cell["halfway"] for cell in trained]),
        "verdicts": [
            OUTPUT.judged(
                max(ratio, key=lambda layer: ratio[layer]) == "output" and all(layer == "output" for layer in least),
                {f"signal-to-noise, {layer}": v for layer, v in ratio.items()}
                | {f"pruned at 95 %, {layer}": v[FRACTIONS.index(0.95)] for layer, v in shares.items()},
                None,
                seeds,
                "as written, prior N(0, 1), 1,200 units",
            )
        ],
    }


def layers(found: Sequence[Cell]) -> dict[str, Any]:
    """What is known of each layer, means over seeds; densities of the first."""
    named = dict(zip(LAYERS, found[0]["weights"]["layers"], strict=True))

    def of(key: str) -> dict[str, float]:
        return {layer: mean([c["weights"]["layers"][name][key] for c in found]) for layer, name in named.items()}

    return {
        "shares": shares_of([c["pruned"] for c in found]),
        "signal_to_noise": of("signal_to_noise"),
        "std": of("std"),
        "density": {layer: found[0]["weights"]["layers"][name]["density"] for layer, name in named.items()},
        "edges": found[0]["weights"]["edges"],
    }


def shares_of(pruned: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """How much of each layer goes, for every share of all weights; means over seeds."""
    return {
        layer: [mean([one["shares"][name][k] for one in pruned]) for k in range(len(FRACTIONS))]
        for layer, name in zip(LAYERS, pruned[0]["shares"], strict=True)
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [
        [layer, column, f"{own['signal_to_noise'][layer]:.3f}", f"{own['std'][layer]:.4f}"]
        for column, own in numbers["columns"].items()
        for layer in own["shares"]
    ]
    heads = ("layer", "trained", "mean |mean| / scale", "standard deviation of drawn weights")
    charts = [
        chart for column, own in numbers["columns"].items() for chart in _charts(column, own, numbers["fractions"])
    ]
    per_cent = [100 * f for f in numbers["fractions"]]
    halfway = [Line(f"{layer} layer", per_cent, [100 * v for v in of]) for layer, of in numbers["halfway"].items()]
    says = "The same nets on their way, as written: 300 of 600 epochs."
    half = Chart(
        "What layers lose after half of the epochs", says, "pruned of all, %", "pruned of the layer, %", halfway
    )
    return [*charts, half, Table("By layer", heads, rows, words=2)]


def _charts(column: str, own: Mapping[str, Any], fractions: Sequence[float]) -> list[Chart]:
    per_cent = [100 * f for f in fractions]
    low, high, pieces = own["edges"]
    edges = np.linspace(low, high, pieces + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    shares = [Line(f"{layer} layer", per_cent, [100 * v for v in of]) for layer, of in own["shares"].items()]
    densities = [
        Line(f"{layer} layer", middles, [v if v > 0 else None for v in of]) for layer, of in own["density"].items()
    ]
    says = "One ranking over all layers.", "One draw; the density is on a log axis."
    return [
        Chart(f"What layers lose, {column}", says[0], "pruned of all, %", "pruned of the layer, %", shares),
        Chart(f"Weights by layer, {column}", says[1], "weight", "density", densities, log_y=True),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-21",
    place=27,
    group="mnist",
    title="Pruning and weights, layer by layer",
    rows=("WU-54",),
    run=run,
    claims=(OUTPUT,),
    reference={"document": "the output layer has the highest signal-to-noise ratio and the broadest weights"},
    left_open=("after how many epochs: 600, and 300 of the same nets on their way",),
    takes=("some seconds", "15 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
