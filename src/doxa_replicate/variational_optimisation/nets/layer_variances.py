"""What becomes of variances when each layer has its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import summary, with_error
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.nets.followed import SCALE, SCALE_RATE, Way, followed, mean_curve, settings

WAY = Way(per="layer", scale_rate=SCALE_RATE, hidden=(100, 100, 100))
LAYERS = ("first layer", "second layer", "third layer", "output layer")


def run(ask: Ask) -> Numbers:
    seeds = ask.these(1, 3)
    own = [followed(ask, "a layer", WAY, seed) for seed in seeds]
    variances = np.mean([one["variance"] for one in own], 0)
    return {
        "settings": {**settings(ask), "net": [784, *WAY.hidden, 10], "rate": WAY.rate, "scale_rate": WAY.scale_rate},
        "seeds": seeds,
        "generation": own[0]["generation"],
        **{key: mean_curve(own, key) for key in ("norm", "gradient")},
        "variances": {name: variances[:, k].tolist() for k, name in enumerate(LAYERS)},
        "times": {name: summary([one["variance"][-1][k] / SCALE**2 for one in own]) for k, name in enumerate(LAYERS)},
        "end": {key: summary([one["end"][key] for one in own]) for key in own[0]["end"]},
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    at, times = numbers["generation"], numbers["times"]
    fell = [name for name, of in times.items() if of["mean"] < 1]
    rows = [[name, with_error(of, 3)] for name, of in times.items()]
    return [
        Chart(
            "Norms",
            f"‖∇U‖ goes from {numbers['gradient'][0]:.0f} to {numbers['gradient'][-1]:.0f}.",
            "generation",
            "",
            [Line("‖μ‖", at, numbers["norm"]), Line("‖∇U‖", at, numbers["gradient"])],
            log_y=True,
        ),
        Chart(
            "Variances",
            f"{len(fell)} of {len(times)} end smaller than they began.",
            "generation",
            "σ²",
            [Line(name, at, values) for name, values in numbers["variances"].items()],
            log_y=True,
        ),
        Table("Variances in the end, over those at the start", ("layer", "times"), rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/layer-variances",
    place=18,
    group="nets",
    title="Adapting a variance for each layer",
    rows=("VO-17", "VO-33"),
    run=run,
    reference={"document": "most variances fall to zero and a few grow, and the gradient's norm grows; no numbers"},
    left_open=(
        "what a layer is: a matrix and its biases, which share one variance",
        "the net: 784-100-100-100-10, so that there are four; data and step as where one variance is adapted",
    ),
    departures={"quick": ("3,000 rows, 60 generations of 20 perturbations",)},
    takes=("some seconds", "seven minutes"),
    show=show,
)
