"""Figure 11: bands of beliefs with a single Gaussian and with a mixture as prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import Evidence
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.compared import records_by_prior_kind
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, seeds

LOW, HIGH = 0.85, 0.99
COVERAGES = ("functions", "with_noise")
CAPTURES = Claim(
    "C-WU-29",
    "The range from the 5th to the 95th percentile mostly captures the noise in the training data",
    f"between {100 * LOW:g} and {100 * HIGH:g} % of fresh points amid the data lie within that of the drawn functions, "
    "with either prior",
)


def run(options: ReplicationOptions) -> Numbers:
    numbers = {column: _column(options, column) for column in COLUMNS}
    return {
        "settings": settings_by_column(options),
        "seeds": seeds(options),
        "columns": numbers,
        "verdicts": [_judge(each["coverage"], seeds(options), column) for column, each in numbers.items()],
    }


def _column(options: ReplicationOptions, column: str) -> dict[str, Any]:
    records = records_by_prior_kind(options, column)
    shares = {name: {key: [r["coverage"][key] for r in rows] for key in COVERAGES} for name, rows in records.items()}
    return {
        "bands": {name: band_fields(rows[0]) for name, rows in records.items()},
        "coverage": {
            name: {key: summary(v) | {"each": v} for key, v in values.items()} for name, values in shares.items()
        },
    }


def _judge(coverage: Mapping[str, Any], belief_seeds: Sequence[int], column: str) -> Verdict:
    evidence = {name: Evidence(entry["functions"]["each"], LOW, HIGH) for name, entry in coverage.items()}
    return CAPTURES.decide(evidence, belief_seeds, column, "share of fresh points; functions, as in the figure")


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [element for column, numbers in columns(result).items() for element in _show_column(column, numbers)]


def _show_column(column: str, numbers: Mapping[str, Any]) -> list[PageElement]:
    rows = [
        [name, *(f"{100 * entry[key]['mean']:.1f}" for key in COVERAGES)] for name, entry in numbers["coverage"].items()
    ]
    headers = ("prior", "of the functions, %", "with the likelihood's noise, %")
    return [
        *(
            band_chart(f"{name.capitalize()}, {column}", spread_caption(entry), entry)
            for name, entry in numbers["bands"].items()
        ),
        ResultTable(
            f"Fresh points amid the data that lie between the 5th and the 95th percentile, {column}", headers, rows
        ),
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
        "the scales of both priors: −log σ = 1, and −log σ₁, σ₂ = 1, 6, of which the authors kept pictures",
    ),
    durations=("some seconds", "fourteen minutes on a GPU, shared with table 2"),
    show=show,
)
