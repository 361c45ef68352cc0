"""What adapting the variance does to gradient and weights: one variance for all weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, mean, standard_error, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.followed import (
    ADAPTED_SCALE,
    FIXED_SCALE,
    HIDDEN,
    LAST_SHARE,
    RATE,
    SCALE_RATE,
    common_settings,
    follow_search,
    mean_curve,
)

ADAPTATIONS = {"fixed": FIXED_SCALE, "adapted": ADAPTED_SCALE}
INFLATES = Claim(
    "C-VO-10",
    "Adapting the variance inflates the gradient",
    f"mean norm of the gradient over the last {100 * LAST_SHARE:g} % of generations: larger with the variance adapted",
)
VARIANCE_FACTOR = 100  # times: the variance is drawn beside norms


def run(options: ReplicationOptions) -> Numbers:
    seeds = options.seed_list(1, 3)
    records_by_kind = {
        name: [follow_search(options, name, adaptation, seed) for seed in seeds]
        for name, adaptation in ADAPTATIONS.items()
    }
    end_gradients = {
        name: [record["end"]["gradient"] for record in records] for name, records in records_by_kind.items()
    }
    gradient_ratios = [a / f for a, f in zip(end_gradients["adapted"], end_gradients["fixed"], strict=True)]
    return {
        "settings": {**common_settings(options), "net": [784, *HIDDEN, 10], "rate": RATE, "scale_rate": SCALE_RATE},
        "seeds": seeds,
        "kinds": {
            name: {
                "generation": records[0]["generation"],
                **{key: mean_curve(records, key) for key in ("norm", "gradient")},
                "variance": np.mean([record["variance"] for record in records], 0)[:, 0].tolist(),
                "end": {key: summary([record["end"][key] for record in records]) for key in records[0]["end"]},
            }
            for name, records in records_by_kind.items()
        },
        "verdicts": [
            INFLATES.judge(
                all(gradient_ratio > 1 for gradient_ratio in gradient_ratios),
                {name: mean(records) for name, records in end_gradients.items()}
                | {"adapted over fixed": mean(gradient_ratios)},
                standard_error(gradient_ratios),
                seeds,
                "MNIST, 784-100-10, plain gradient of ranks, SGD; the error is that of the ratio",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    kinds = result["numbers"]["kinds"]
    charts = [
        Chart(
            f"Variance {name}",
            f"The variance ends at {curves['variance'][-1]:.2g}, ‖∇U‖ at {curves['gradient'][-1]:.0f}.",
            "generation",
            "",
            [
                ChartLine("‖μ‖", curves["generation"], curves["norm"]),
                ChartLine("‖∇U‖", curves["generation"], curves["gradient"]),
                ChartLine("100 σ²", curves["generation"], [VARIANCE_FACTOR * v for v in curves["variance"]]),
            ],
            log_y=True,
        )
        for name, curves in kinds.items()
    ]
    rows = [
        [
            name,
            format_with_error(end["gradient"], 0),
            format_with_error(end["norm"], 1),
            format_with_error(end["accuracy"], 2),
        ]
        for name, curves in kinds.items()
        for end in [curves["end"]]
    ]
    return [*charts, ResultTable("In the end", ("variance", "‖∇U‖", "‖μ‖", "accuracy %, test rows"), rows)]


ARTEFACT = Artefact(
    name="variational-optimisation/adapted-variance",
    order=17,
    group="nets",
    title="Adapting one variance for all weights",
    requirements=("VO-32",),
    run=run,
    claims=(INFLATES,),
    reference={"document": "norms of gradient and weights grow when the variance is adapted; no numbers"},
    left_open=(
        "net and data: 784-100-10 on MNIST, 128 rows, N = 100 in pairs, centred ranks, σ = 0.05 at the start",
        "the step: SGD with momentum 0.9 at 0.001, the best of 0.0001, 0.0003, 0.001 and 0.003 after 200 generations, "
        "by rows held out, with another seed and the variance fixed",
        "the coordinate that is stepped: log σ, so that no step makes a variance negative; 0.3 times as fast as the "
        "mean, not chosen by anything",
    ),
    departures={"quick": ("3,000 rows, 60 generations of 20 perturbations",)},
    durations=("some seconds", "ten minutes, its searches shared with ways-round"),
    show=show,
)
