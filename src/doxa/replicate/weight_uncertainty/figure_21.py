"""Figure 21: from which layers the weights go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa.replicate.contract import Artefact, Ask, Claim, Numbers
from doxa.replicate.show import Chart, Line, Shown, Table
from doxa.replicate.weight_uncertainty.digit_cells import FRACTIONS, cells
from doxa.replicate.weight_uncertainty.regression import mean

LAYERS = ("first", "second", "output")
OUTPUT = Claim(
    "C-WU-19",
    "The output layer has the highest signal-to-noise ratio, and is pruned least",
    "mean |mean| / scale ranks the output layer first, and its share pruned is the lowest at 75 % and at 95 %",
)


def run(ask: Ask) -> Numbers:
    found = cells(ask, "gaussian", 1200)
    seeds = [cell["seed"] for cell in found]
    names = list(found[0]["weights"]["layers"])
    ratio = {
        layer: mean([c["weights"]["layers"][name]["signal_to_noise"] for c in found])
        for layer, name in zip(LAYERS, names, strict=True)
    }
    shares = {
        layer: [mean([c["pruned"]["shares"][name][k] for c in found]) for k in range(len(FRACTIONS))]
        for layer, name in zip(LAYERS, names, strict=True)
    }
    least = [min(shares, key=lambda layer: shares[layer][FRACTIONS.index(f)]) for f in (0.75, 0.95)]
    layers = found[0]["weights"]["layers"]
    return {
        "settings": {"units": 1200, "prior": "N(0, 1)"},
        "seeds": seeds,
        "fractions": FRACTIONS,
        "shares": shares,
        "signal_to_noise": ratio,
        "std": {
            layer: mean([c["weights"]["layers"][name]["std"] for c in found])
            for layer, name in zip(LAYERS, names, strict=True)
        },
        "density": {layer: layers[name]["density"] for layer, name in zip(LAYERS, names, strict=True)},
        "edges": found[0]["weights"]["edges"],
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


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    per_cent = [100 * f for f in numbers["fractions"]]
    shares = [Line(f"{layer} layer", per_cent, [100 * v for v in own]) for layer, own in numbers["shares"].items()]
    low, high, pieces = numbers["edges"]
    edges = np.linspace(low, high, pieces + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    densities = [
        Line(f"{layer} layer", middles, [v if v > 0 else None for v in own])
        for layer, own in numbers["density"].items()
    ]
    rows = [
        [layer, f"{numbers['signal_to_noise'][layer]:.3f}", f"{numbers['std'][layer]:.4f}"]
        for layer in numbers["shares"]
    ]
    return [
        Chart(
            "What each layer loses",
            "One ranking over all layers.",
            "pruned of all, %",
            "pruned of the layer, %",
            shares,
        ),
        Chart(
            "Weights by layer",
            "One draw; the density's axis is logarithmic.",
            "weight",
            "density",
            densities,
            log_y=True,
        ),
        Table("By layer", ("layer", "mean |mean| / scale", "standard deviation of drawn weights"), rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-21",
    group="mnist",
    title="Pruning and weights, layer by layer",
    rows=("WU-54",),
    run=run,
    claims=(OUTPUT,),
    reference={"document": "the output layer has the highest signal-to-noise ratio and the broadest weights"},
    takes=("some seconds", "ten minutes on a GPU"),
    show=show,
)
