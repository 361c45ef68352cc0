"""Table 2: log predictive density with scale mixtures as priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_with_error
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import best_of
from doxa_replicate.weight_uncertainty.curve.densities import (
    EACH,
    METRICS,
    beside_document,
    comparison_table,
    density_table,
)
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import belief_records, settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    COLUMNS,
    NARROW_SCALES,
    SEEDS_AS_RUN,
    WIDE_SCALES,
    seeds,
)

DOCUMENT_LPPD = {
    "0, 6": -32.40,
    "0, 7": -412.87,
    "0, 8": -184.17,
    "1, 6": -3.21,
    "1, 7": -22.46,
    "1, 8": -21.29,
    "2, 6": -21.58,
    "2, 7": -16.77,
    "2, 8": -16.20,
}
AUTHORS_EQ_20 = {
    **{"0, 6": -0.28, "0, 7": -0.34, "0, 8": -0.21},
    **{"1, 6": 0.21, "1, 7": -0.05, "1, 8": -0.01},
    **{"2, 6": -8.60, "2, 7": -5.52, "2, 8": -4.86},
}
BEST = "1, 6"
BEST_MIXTURE = Claim(
    "C-WU-6",
    "Of nine mixtures the one with −log σ₁, σ₂ = 1, 6 has the highest lppd",
    "its density less that of each other one: above 0; the mean of log densities, as printed, and the lppd are judged "
    "apart",
)


def run(options: ReplicationOptions) -> Numbers:
    numbers = {column: {"lppd": density_table(belief_records(options, column, "mixture"))} for column in COLUMNS}
    return {
        "settings": settings_by_column(options),
        "seeds": seeds(options),
        "columns": numbers,
        "beside": {
            prior: beside_document(numbers[AS_RUN]["lppd"][prior]["each_mean_log"], document)
            for prior, document in DOCUMENT_LPPD.items()
        },
        "verdicts": [
            verdict for column, each in numbers.items() for verdict in _judge(each["lppd"], seeds(options), column)
        ],
    }


def _judge(table: Mapping[str, Any], belief_seeds: Sequence[int], column: str) -> list[Verdict]:
    return [
        BEST_MIXTURE.decide(
            best_of({prior: row[EACH[metric]] for prior, row in table.items()}, BEST), belief_seeds, column, words
        )
        for metric, words in METRICS.items()
    ]


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    if "beside" in result["numbers"]:
        caption = "The mean of log densities, nets of the last epoch; the document's numbers are one run each."
        elements.append(
            comparison_table("Table 2 as run", result["numbers"]["beside"], caption, first="−log σ₁, −log σ₂")
        )
    for column, numbers in columns(result).items():
        elements += [
            _table(column, numbers["lppd"], metric, words)
            for metric, words in METRICS.items()
            if metric in next(iter(numbers["lppd"].values()))
        ]
    return elements


def _table(column: str, table: Mapping[str, Any], metric: str, words: str) -> ResultTable:
    best = max(table, key=lambda prior: table[prior][metric])
    error, beside = ("se", AUTHORS_EQ_20) if metric == "lppd" else ("se_mean_log", DOCUMENT_LPPD)
    rows = []
    for wide in WIDE_SCALES:
        row = [f"{wide}"]
        for narrow in NARROW_SCALES:
            prior = f"{wide}, {narrow}"
            cell, mark = table[prior], "**" * (prior == best)
            value_text = format_with_error({"mean": cell[metric], "se": cell[error]}, 2)
            row.append(f"{mark}{value_text}{mark} ({beside[prior]:.2f})")
        rows.append(row)
    headers = ("−log σ₁", *(f"−log σ₂ = {narrow}" for narrow in NARROW_SCALES))
    source = "on the authors' nets" if metric == "lppd" else "in the document"
    return ResultTable(f"{words[0].upper()}{words[1:]} ± standard error over seeds, {column} ({source})", headers, rows)


ARTEFACT = Artefact(
    name="weight-uncertainty/table-2",
    order=13,
    group="regression",
    title="Log predictive density, scale mixture priors",
    requirements=("WU-38",),
    run=run,
    claims=(BEST_MIXTURE,),
    reference={
        "lppd": DOCUMENT_LPPD,
        "Eq 20 on the same nets": AUTHORS_EQ_20,
        "note": "the document calls −3.21 its lowest; it is the highest, and the best. What is printed is the mean of "
        "log densities, of one net a cell, each trained for epochs of its own, 2,500 to 25,000",
    },
    left_open=("as in table 1",),
    departures={"full": ("ten trainings of each cell where the document has one", SEEDS_AS_RUN)},
    durations=("some seconds", "fourteen minutes on a GPU"),
    show=show,
)
