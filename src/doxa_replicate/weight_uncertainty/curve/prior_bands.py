"""Figure 11: bands of beliefs with a single Gaussian and with a mixture as prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, drawn, spread_says
from doxa_replicate.weight_uncertainty.curve.function_draws import BELIEFS

LOW, HIGH = 0.85, 0.99
CAPTURES = Claim(
    "C-WU-29",
    "The range from the 5th to the 95th percentile mostly captures the noise in the training data",
    f"between {100 * LOW:g} and {100 * HIGH:g} % of fresh points amid the data lie within it, with either prior",
)


def run(ask: Ask) -> Numbers:
    found = {name: trainings.records(ask, fleet)[prior] for name, (fleet, prior) in BELIEFS.items()}
    shares = {
        name: {key: [r["coverage"][key] for r in rows] for key in ("functions", "with_noise")}
        for name, rows in found.items()
    }
    of_functions = {name: mean(own["functions"]) for name, own in shares.items()}
    return {
        "settings": trainings.settings(ask),
        "seeds": trainings.seeds(ask),
        "bands": {name: drawn(rows[0]) for name, rows in found.items()},
        "coverage": {name: {key: summary(v) for key, v in own.items()} for name, own in shares.items()},
        "verdicts": [
            CAPTURES.judged(
                all(LOW <= share <= HIGH for share in of_functions.values()),
                of_functions | {f"{name}, with noise": mean(own["with_noise"]) for name, own in shares.items()},
                max((error(own["functions"]) or 0.0 for own in shares.values()), default=None),
                trainings.seeds(ask),
                "percentiles of the drawn functions, as in the figure",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [
        [name, *(f"{100 * own[key]['mean']:.1f}" for key in ("functions", "with_noise"))]
        for name, own in numbers["coverage"].items()
    ]
    heads = ("prior", "of the functions, %", "with the likelihood's noise, %")
    return [
        *(band_chart(name, spread_says(own), own) for name, own in numbers["bands"].items()),
        Table("Fresh points amid the data that lie between the 5th and the 95th percentile", heads, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-11",
    place=9,
    group="regression",
    title="What beliefs with either prior expect of the curve",
    rows=("WU-34",),
    run=run,
    claims=(CAPTURES,),
    reference={"document": "both are unsure off the data, and their 5–95 % range mostly covers the noise"},
    left_open=(
        "whether the percentiles are of functions or of points with noise: both are counted, functions are judged",
        "the scales of both priors: −log σ = 1, and −log σ₁, σ₂ = 1, 6",
    ),
    takes=("some seconds", "two minutes on a GPU"),
    show=show,
)
