"""What becomes of variances when each layer has its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.as_run import searches as as_run
from doxa_replicate.variational_optimisation.nets.followed import (
    SCALE,
    SCALE_RATE,
    ScaleAdaptation,
    common_settings,
    follow_search,
    mean_curve,
)

ADAPTATION = ScaleAdaptation(per="layer", scale_rate=SCALE_RATE, hidden=(100, 100, 100))
TENSOR_NAMES = {
    f"{place}.{kind}": f"{layer}, {name}"
    for place, layer in ((1, "first convolution"), (5, "second convolution"), (10, "first dense"), (13, "output"))
    for kind, name in (("weight", "weights"), ("bias", "biases"))
}
LAYER_NAMES = ("first layer", "second layer", "third layer", "output layer")


def run(options: ReplicationOptions) -> Numbers:
    return {
        "settings": {
            AS_RUN: as_run.settings(options) | {"rate of log σ²": as_run.ADAPTED[as_run.BY_TENSOR].variance_rate},
            AS_WRITTEN: {
                **common_settings(options),
                "net": [784, *ADAPTATION.hidden, 10],
                "rate": ADAPTATION.rate,
                "scale_rate": ADAPTATION.scale_rate,
            },
        },
        "seeds": as_run.seeds(options),
        "columns": {
            AS_RUN: as_run.of_name(options, as_run.BY_TENSOR),
            AS_WRITTEN: _column_as_written(options),
        },
    }


def _column_as_written(options: ReplicationOptions) -> dict[str, Any]:
    records = [follow_search(options, "a layer", ADAPTATION, seed) for seed in options.seed_list(1, 3)]
    variances = np.mean([record["variance"] for record in records], 0)
    return {
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
    return [
        part
        for column, numbers in columns(result).items()
        for part in (_parts_as_run(numbers) if column == AS_RUN else _parts_as_written(numbers))
    ]


def _norms_chart(numbers: Mapping[str, Any], column: str) -> Chart:
    generations, gradient = numbers["generation"], numbers["gradient"]
    return Chart(
        f"Norms, {column}",
        f"‖∇U‖ goes from {gradient[0]:.3g} to {gradient[-1]:.3g}.",
        "generation",
        "",
        [ChartLine("‖μ‖", generations, numbers["norm"]), ChartLine("‖∇U‖", generations, gradient)],
        log_y=True,
    )


def _parts_as_run(numbers: Mapping[str, Any]) -> list[PageElement]:
    end = numbers["end"]
    rows = [
        ["his", "3 to 4, later 2.8", "57 to 60", "97.8"],
        [
            "here",
            *(as_run.format_end(end[key], places) for key, places in (("gradient", 2), ("norm", 1), ("accuracy", 2))),
        ],
    ]
    table = ResultTable("In the end, as run", ("run", "‖∇U‖", "‖μ‖", "accuracy %, test rows"), rows)
    if not numbers["generation"]:
        return [table]
    fallen = [values for values in numbers["scales"].values() if values[-1] < values[0]]
    return [
        _norms_chart(numbers, AS_RUN),
        Chart(
            "σ of each tensor, as run",
            f"{len(fallen)} of {len(numbers['scales'])} end smaller than they began; he shows BatchNorm's too.",
            "generation",
            "σ",
            [
                ChartLine(TENSOR_NAMES.get(name, name), numbers["generation"], values)
                for name, values in numbers["scales"].items()
            ],
            log_y=True,
        ),
        table,
    ]


def _parts_as_written(numbers: Mapping[str, Any]) -> list[PageElement]:
    generations, variance_factors = numbers["generation"], numbers["times"]
    fallen_layers = [name for name, factor in variance_factors.items() if factor["mean"] < 1]
    rows = [[name, format_with_error(factor, 3)] for name, factor in variance_factors.items()]
    return [
        _norms_chart(numbers, AS_WRITTEN),
        Chart(
            "Variances, as written",
            f"{len(fallen_layers)} of {len(variance_factors)} end smaller than they began.",
            "generation",
            "σ²",
            [ChartLine(name, generations, values) for name, values in numbers["variances"].items()],
            log_y=True,
        ),
        ResultTable("Variances in the end, over those at the start, as written", ("layer", "times"), rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/layer-variances",
    order=18,
    group="nets",
    title="Adapting a variance for each layer",
    requirements=("VO-17", "VO-33"),
    run=run,
    reference={
        "document": "most variances fall to zero and a few grow, and the gradient's norm grows; no numbers",
        "note": "in its figure, of one run with a σ for each of 14 tensors, most fall and the largest ends near 0.115; "
        "the gradient's norm is 3 to 4, later 2.8, and the weights' 57 to 60",
    },
    left_open=(
        *as_run.SETTINGS_OPEN,
        "as run, which tensors are shown: the eight of weights and biases; BatchNorm's six are adapted and not shown",
        "as written, what a layer is: a matrix and its biases, which share one variance",
        "as written, the net: 784-100-100-100-10, so that there are four; data and step as where one variance is",
    ),
    departures={
        "quick": ("3,000 rows, few generations of few perturbations",),
        "full": ("as run five seeds, where the author had one run",),
    },
    durations=("some seconds", "twenty minutes on a GPU, its searches shared with ways-round"),
    show=show,
)
