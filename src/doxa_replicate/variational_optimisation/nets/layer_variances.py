"""What becomes of variances when each layer has its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.followed import (
    SCALE,
    SCALE_RATE,
    ScaleAdaptation,
    common_settings,
    follow_search,
    mean_curve,
)

ADAPTATION = ScaleAdaptation(per="layer", scale_rate=SCALE_RATE, hidden=(100, 100, 100))
LAYER_NAMES = ("first layer", "second layer", "third layer", "output layer")


def run(options: ReplicationOptions) -> Numbers:
    seeds = options.seed_list(1, 3)
    records = [follow_search(options, "a layer", ADAPTATION, seed) for seed in seeds]
    variances = np.mean([record["variance"] for record in records], 0)
    return {
        "settings": {
            **common_settings(options),
            "net": [784, *ADAPTATION.hidden, 10],
            "rate": ADAPTATION.rate,
            "scale_rate": ADAPTATION.scale_rate,
        },
        "seeds": seeds,
        "generation": records[0]["generation"],
        **{key: mean_curve(records, key) for key in ("norm", "gradient")},
        "variances": {name: variances[:, k].tolist() for k, name in enumerate(LAYER_NAMES)},
        "times": {
            name: summary([record["variance"][-1][k] / SCALE**2 for record in records])
            for k, name in enumerate(LAYER_NAMES)
        },
        "end": {key: summary([record["end"][key] for record in records]) for key in records[0]["end"]},
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    generations, variance_factors = numbers["generation"], numbers["times"]
    fallen_layers = [name for name, factor in variance_factors.items() if factor["mean"] < 1]
    rows = [[name, format_with_error(factor, 3)] for name, factor in variance_factors.items()]
    return [
        Chart(
            "Norms",
            f"‖∇U‖ goes from {numbers['gradient'][0]:.0f} to {numbers['gradient'][-1]:.0f}.",
            "generation",
            "",
            [ChartLine("‖μ‖", generations, numbers["norm"]), ChartLine("‖∇U‖", generations, numbers["gradient"])],
            log_y=True,
        ),
        Chart(
            "Variances",
            f"{len(fallen_layers)} of {len(variance_factors)} end smaller than they began.",
            "generation",
            "σ²",
            [ChartLine(name, generations, values) for name, values in numbers["variances"].items()],
            log_y=True,
        ),
        ResultTable("Variances in the end, over those at the start", ("layer", "times"), rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/layer-variances",
    order=18,
    group="nets",
    title="Adapting a variance for each layer",
    requirements=("VO-17", "VO-33"),
    run=run,
    reference={"document": "most variances fall to zero and a few grow, and the gradient's norm grows; no numbers"},
    left_open=(
        "what a layer is: a matrix and its biases, which share one variance",
        "the net: 784-100-100-100-10, so that there are four; data and step as where one variance is adapted",
    ),
    departures={"quick": ("3,000 rows, 60 generations of 20 perturbations",)},
    durations=("some seconds", "seven minutes"),
    show=show,
)
