"""Ways round the harm that adapted variances do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.search.distribution.coordinates import Coordinate
from doxa.search.distribution.gradients import natural
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, mean, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.followed import (
    ADAPTED_SCALE,
    FIXED_SCALE,
    HIDDEN,
    RATE,
    SCALE,
    SCALE_RATE,
    ScaleAdaptation,
    common_settings,
    follow_search,
    mean_curve,
)

SCALE_FLOOR = SCALE / 2


def _not_below(c: Tensor) -> Tensor:
    return c.exp().clamp_min(SCALE_FLOOR)


CLAMPED = Coordinate(f"log_scale from {SCALE_FLOOR:g}", torch.log, _not_below, torch.ones_like)
# The natural gradient by the mean is σ² times the plain one: at the start its steps are as long as the others'.
NATURAL_RATE = RATE / SCALE**2
ADAPTATIONS = {
    "fixed": FIXED_SCALE,
    "adapted": ADAPTED_SCALE,
    f"kept from falling below {SCALE_FLOOR:g}": ScaleAdaptation(scale_rate=SCALE_RATE, coordinate=CLAMPED),
    "natural steps": ScaleAdaptation(scale_rate=1.0, gradient=natural, rate=NATURAL_RATE),
    "one a weight": ScaleAdaptation(per="weight", scale_rate=SCALE_RATE),
    "one a weight, natural steps": ScaleAdaptation(per="weight", scale_rate=1.0, gradient=natural, rate=NATURAL_RATE),
}


def run(options: ReplicationOptions) -> Numbers:
    seeds = options.seed_list(1, 3)
    records_by_way = {
        name: [follow_search(options, name, adaptation, seed) for seed in seeds]
        for name, adaptation in ADAPTATIONS.items()
    }
    return {
        "settings": {
            **common_settings(options),
            "net": [784, *HIDDEN, 10],
            "floor": SCALE_FLOOR,
            "rate of natural steps": round(NATURAL_RATE, 6),
        },
        "seeds": seeds,
        "ways": {
            name: {
                "generation": records[0]["generation"],
                **{key: mean_curve(records, key) for key in ("norm", "gradient")},
                "variance": summary([mean(record["variance"][-1]) for record in records]),
                "end": {key: summary([record["end"][key] for record in records]) for key in records[0]["end"]},
            }
            for name, records in records_by_way.items()
        },
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    ways = result["numbers"]["ways"]
    rows = [
        [
            name,
            f"{way_numbers['variance']['mean']:.2g}",
            format_with_error(way_numbers["end"]["norm"], 1),
            format_with_error(way_numbers["end"]["accuracy"], 2),
        ]
        for name, way_numbers in ways.items()
    ]
    accuracies = {name: way_numbers["end"]["accuracy"]["mean"] for name, way_numbers in ways.items()}
    accuracy_losses = {name: accuracies["fixed"] - value for name, value in accuracies.items() if name != "fixed"}
    losses_text = ", ".join(f"{round(loss, 1) + 0.0:.1f} ({name})" for name, loss in accuracy_losses.items())
    return [
        Chart(
            "Length of the mean",
            "Weights grow where the variance falls, and where it runs away.",
            "generation",
            "‖μ‖",
            [ChartLine(name, way_numbers["generation"], way_numbers["norm"]) for name, way_numbers in ways.items()],
            log_y=True,
        ),
        ResultTable(
            "In the end",
            ("variance", "σ², mean of all", "‖μ‖", "accuracy %, test rows"),
            rows,
            caption=f"Points of accuracy that an adapted variance costs beside a fixed one: {losses_text}.",
        ),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/ways-round",
    order=19,
    group="nets",
    title="Ways round the harm of an adapted variance",
    requirements=("VO-40",),
    run=run,
    reference={
        "document": "log σ as parameter, a clamp or natural steps are proposed, and not tried; a variance for each "
        "weight did not harm what was reached; no numbers"
    },
    left_open=(
        "net, data and step as where one variance is adapted; all adapt log σ, so that none becomes negative",
        f"the clamp: no scale below {SCALE_FLOOR:g}, half of the start",
        "natural steps: the rate at which the mean's first steps are as long as the others', for mean and scales alike",
    ),
    departures={"quick": ("3,000 rows, 60 generations of 20 perturbations",)},
    durations=("some seconds", "half an hour"),
    show=show,
)
