"""Figure 11: bands of beliefs with a single Gaussian and with a mixture as prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean, standard_error, summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.compared_records import records_by_prior_kind

LOW, HIGH = 0.85, 0.99
CAPTURES = Claim(
    "C-WU-29",
    "The range from the 5th to the 95th percentile mostly captures the noise in the training data",
    f"between {100 * LOW:g} and {100 * HIGH:g} % of fresh points amid the data lie within it, with either prior",
)


def run(options: ReplicationOptions) -> Numbers:
    records = records_by_prior_kind(options)
    shares = {
        name: {key: [r["coverage"][key] for r in rows] for key in ("functions", "with_noise")}
        for name, rows in records.items()
    }
    function_coverage = {name: mean(values["functions"]) for name, values in shares.items()}
    return {
        "settings": trainings.common_settings(options),
        "seeds": trainings.seeds(options),
        "bands": {name: band_fields(rows[0]) for name, rows in records.items()},
        "coverage": {name: {key: summary(v) for key, v in values.items()} for name, values in shares.items()},
        "verdicts": [
            CAPTURES.judge(
                all(LOW <= share <= HIGH for share in function_coverage.values()),
                function_coverage
                | {f"{name}, with noise": mean(values["with_noise"]) for name, values in shares.items()},
                max((standard_error(values["functions"]) or 0.0 for values in shares.values()), default=None),
                trainings.seeds(options),
                "percentiles of the drawn functions, as in the figure",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [
        [name, *(f"{100 * entry[key]['mean']:.1f}" for key in ("functions", "with_noise"))]
        for name, entry in numbers["coverage"].items()
    ]
    headers = ("prior", "of the functions, %", "with the likelihood's noise, %")
    return [
        *(band_chart(name, spread_caption(entry), entry) for name, entry in numbers["bands"].items()),
        ResultTable("Fresh points amid the data that lie between the 5th and the 95th percentile", headers, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-11",
    order=9,
    group="regression",
    title="What beliefs with either prior expect of the curve",
    requirements=("WU-34",),
    run=run,
    claims=(CAPTURES,),
    reference={"document": "both are unsure off the data, and their 5–95 % range mostly covers the noise"},
    left_open=(
        "whether the percentiles are of functions or of points with noise: both are counted, functions are judged",
        "the scales of both priors: −log σ = 1, and −log σ₁, σ₂ = 1, 6",
    ),
    durations=("some seconds", "two minutes on a GPU"),
    show=show,
)
