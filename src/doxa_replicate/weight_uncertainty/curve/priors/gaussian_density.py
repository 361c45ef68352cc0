"""Table 1: log predictive density with single Gaussians as priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import Evidence, paired
from doxa_replicate.weight_uncertainty.curve.densities import (
    EACH,
    METRICS,
    beside_document,
    comparison_table,
    density_row,
    density_table,
)
from doxa_replicate.weight_uncertainty.curve.losses import CONVERGED, JUDGED_BY, LOSS_OF_COLUMN
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import belief_records, settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, SEEDS_AS_RUN, seeds

DOCUMENT_LPPD = {"0": -120.34, "1": -16.21, "2": -9.69}  # each the mean of three runs
AUTHORS_RUNS = {"0": (-94.35, -112.85, -153.81), "1": (-12.74, -20.49, -15.39), "2": (-7.18, -6.79, -15.10)}
AUTHORS_EQ_20 = {"0": -0.31, "1": -0.01, "2": -2.37}  # of the same nets
NARROWER_IS_BETTER = Claim(
    "C-WU-4",
    "The narrower a single Gaussian prior, the sooner it converges and the higher its lppd",
    "from −log σ = 0 to 1 and from 1 to 2: epochs saved until 95 % of the way to the final loss above 0 (as run that "
    "of the last minibatch, else the free energy), and the density gained above 0; the mean of log densities, as "
    "printed, and the lppd are judged apart",
)


def run(options: ReplicationOptions) -> Numbers:
    numbers = {column: _column(options, column) for column in COLUMNS}
    return {
        "settings": settings_by_column(options),
        "seeds": seeds(options),
        "columns": numbers,
        "beside": {
            prior: beside_document(numbers[AS_RUN]["lppd"][prior]["each_mean_log"], document, len(AUTHORS_RUNS[prior]))
            for prior, document in DOCUMENT_LPPD.items()
        },
        "verdicts": [verdict for column, each in numbers.items() for verdict in _judge(each, seeds(options), column)],
    }


def _column(options: ReplicationOptions, column: str) -> dict[str, Any]:
    records, loss = belief_records(options, column, "gaussian"), LOSS_OF_COLUMN[column]
    at_the_end = {prior: [r for r in rows if r["densities_last"] is not None] for prior, rows in records.items()}
    return {
        "lppd": density_table(records),
        "at_the_end": {
            p: density_row([r["densities_last"] for r in rows], rows) for p, rows in at_the_end.items() if rows
        },
        "epochs": {
            measure: {
                prior: summary(values) | {"each": values}
                for prior, rows in records.items()
                for values in [[r[loss][measure] for r in rows]]
            }
            for measure in CONVERGED
        },
    }


def _judge(numbers: Mapping[str, Any], belief_seeds: Sequence[int], column: str) -> list[Verdict]:
    epochs = {prior: entry["each"] for prior, entry in numbers["epochs"][JUDGED_BY].items()}
    steps = (("0", "1"), ("1", "2"))
    sooner = {f"epochs, {a} less {b}": paired(epochs[a], epochs[b], above=0.0) for a, b in steps}
    return [
        NARROWER_IS_BETTER.decide(
            sooner | {f"{words}, {b} less {a}": _gain(numbers["lppd"], metric, a, b) for a, b in steps},
            belief_seeds,
            column,
            f"−log σ; {words}",
        )
        for metric, words in METRICS.items()
    ]


def _gain(table: Mapping[str, Any], metric: str, wide: str, narrow: str) -> Evidence:
    """What a narrower prior's density is above a wider one's, seed by seed."""
    key = EACH[metric]
    return paired(table[narrow][key], table[wide][key], above=0.0)


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    if "beside" in result["numbers"]:
        caption = (
            "The mean of log densities over 5,000 draws at 1,000 points of [−0.2, 1.4], of each net as it stood at its "
            "lowest last-minibatch loss; the document's numbers are means of three runs."
        )
        elements.append(comparison_table("Table 1 as run", result["numbers"]["beside"], caption, first="−log σ"))
    for column, numbers in columns(result).items():
        elements.append(_table(column, numbers))
        if numbers.get("at_the_end"):
            elements.append(_end_table(column, numbers))
    return elements


def _end_table(column: str, numbers: Mapping[str, Any]) -> ResultTable:
    """The nets that were kept beside the same ones after their last epoch."""
    rows = [
        [
            prior,
            f"{min(row['kept_at'])} to {max(row['kept_at'])}",
            *(f"{each[metric]:.2f}" for metric in METRICS for each in (row, numbers["at_the_end"][prior])),
        ]
        for prior, row in numbers["lppd"].items()
    ]
    headers = ("−log σ", "kept at epochs", "mean of logs", "at the last epoch", "lppd", "at the last epoch")
    return ResultTable(f"As they were kept, and after the last epoch, {column}", headers, rows)


def _table(column: str, numbers: Mapping[str, Any]) -> ResultTable:
    rows = [
        [
            prior,
            f"{DOCUMENT_LPPD[prior]:.2f}",
            f"{row['mean_log']:.2f} ± {row['se_mean_log'] or 0:.2f}" if "mean_log" in row else "–",
            f"{AUTHORS_EQ_20[prior]:.2f}",
            format_with_error({"mean": row["lppd"], "se": row["se"]}, 2),
            f"{row['inside']:.2f}",
            f"{row['monte_carlo_error']:.2g}",
            *(f"{by_prior[prior]['mean']:.0f}" for by_prior in numbers["epochs"].values()),
        ]
        for prior, row in numbers["lppd"].items()
    ]
    headers = (
        *("−log σ", "document", "mean of logs", "lppd of the authors' nets", "lppd", "amid the data"),
        *("± of the draws", "epochs to within 5 % of the loss", "to 95 % of the way"),
    )
    return ResultTable(f"Density, ± standard error over seeds, {column}", headers, rows)


ARTEFACT = Artefact(
    name="weight-uncertainty/table-1",
    order=11,
    group="regression",
    title="Log predictive density, single Gaussian priors",
    requirements=("WU-36",),
    run=run,
    claims=(NARROWER_IS_BETTER,),
    reference={
        "lppd by −log σ": DOCUMENT_LPPD,
        "its three runs": AUTHORS_RUNS,
        "Eq 20 on the same nets": AUTHORS_EQ_20,
        "note": "what is printed is the mean over draws of the mean log density, at points of [−0.2, 1.4], not Eq 20, "
        "the log of the mean density on [−0.5, 1.5]; by Eq 20 the authors' own nets are best with −log σ = 1",
    },
    left_open=(
        "when a loss has converged: at 95 % of the way from the first epoch to the end; the table also has when it is "
        "within 5 % of its end, which is near 0",
        "over how many points the density is averaged: 1,000, on [−0.2, 1.4] as run, on [−0.5, 1.5] as written and "
        "chosen",
        "the noise inside it: σ_ε = 0.1, as in training",
        "which net is judged: as run the one at the lowest last-minibatch loss, else that of the last epoch",
    ),
    departures={"full": (SEEDS_AS_RUN,)},
    durations=("some seconds", "three minutes on a GPU"),
    show=show,
)
