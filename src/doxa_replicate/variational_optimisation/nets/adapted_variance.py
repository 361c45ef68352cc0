"""What adapting the variance does to gradient and weights: one variance for all weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary, with_error
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.nets.followed import (
    ADAPTED,
    FIXED,
    HIDDEN,
    LAST,
    RATE,
    SCALE_RATE,
    followed,
    mean_curve,
    settings,
)

KINDS = {"fixed": FIXED, "adapted": ADAPTED}
INFLATES = Claim(
    "C-VO-10",
    "Adapting the variance inflates the gradient",
    f"mean norm of the gradient over the last {100 * LAST:g} % of generations: larger with the variance adapted",
)
LARGER = 100  # times: the variance is drawn beside norms


def run(ask: Ask) -> Numbers:
    seeds = ask.these(1, 3)
    found = {name: [followed(ask, name, way, seed) for seed in seeds] for name, way in KINDS.items()}
    ends = {name: [one["end"]["gradient"] for one in own] for name, own in found.items()}
    more = [a / f for a, f in zip(ends["adapted"], ends["fixed"], strict=True)]
    return {
        "settings": {**settings(ask), "net": [784, *HIDDEN, 10], "rate": RATE, "scale_rate": SCALE_RATE},
        "seeds": seeds,
        "kinds": {
            name: {
                "generation": own[0]["generation"],
                **{key: mean_curve(own, key) for key in ("norm", "gradient")},
                "variance": np.mean([one["variance"] for one in own], 0)[:, 0].tolist(),
                "end": {key: summary([one["end"][key] for one in own]) for key in own[0]["end"]},
            }
            for name, own in found.items()
        },
        "verdicts": [
            INFLATES.judged(
                all(times > 1 for times in more),
                {name: mean(own) for name, own in ends.items()} | {"adapted over fixed": mean(more)},
                error(more),
                seeds,
                "MNIST, 784-100-10, plain gradient of ranks, SGD; the error is that of the ratio",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    kinds = found["numbers"]["kinds"]
    charts = [
        Chart(
            f"Variance {name}",
            f"The variance ends at {own['variance'][-1]:.2g}, ‖∇U‖ at {own['gradient'][-1]:.0f}.",
            "generation",
            "",
            [
                Line("‖μ‖", own["generation"], own["norm"]),
                Line("‖∇U‖", own["generation"], own["gradient"]),
                Line("100 σ²", own["generation"], [LARGER * v for v in own["variance"]]),
            ],
            log_y=True,
        )
        for name, own in kinds.items()
    ]
    rows = [
        [name, with_error(of["gradient"], 0), with_error(of["norm"], 1), with_error(of["accuracy"], 2)]
        for name, own in kinds.items()
        for of in [own["end"]]
    ]
    return [*charts, Table("In the end", ("variance", "‖∇U‖", "‖μ‖", "accuracy %, test rows"), rows)]


ARTEFACT = Artefact(
    name="variational-optimisation/adapted-variance",
    place=17,
    group="nets",
    title="Adapting one variance for all weights",
    rows=("VO-32",),
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
    takes=("some seconds", "ten minutes, its searches shared with ways-round"),
    show=show,
)
