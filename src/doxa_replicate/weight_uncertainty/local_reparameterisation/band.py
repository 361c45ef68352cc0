"""Figure 14: the belief that local reparameterisation learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import paired
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.densities import METRICS, beside_document, comparison_table
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import belief_records, settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, DEFAULT_PRIOR, SEEDS_AS_RUN, seeds
from doxa_replicate.weight_uncertainty.local_reparameterisation.priors import PRIORS

LOWER_LPPD = Claim(
    "C-WU-10",
    "Local reparameterisation ends at a lower lppd",
    "density with local noise less that with shared noise, the prior being the same, for both scales: below 0; the "
    "mean of log densities, as printed, and the lppd are judged apart",
)
FLEETS = {"shared": "gaussian", "local": "local"}
WIDTHS = ("iqr_inside", "iqr_outside")
DOCUMENT_LPPD = {"local, −log σ = 1": -26.03, "shared, −log σ = 1": -16.21}


def run(options: ReplicationOptions) -> Numbers:
    numbers = {column: _column(options, column) for column in COLUMNS}
    rows = numbers[AS_RUN]["rows"]
    return {
        "settings": settings_by_column(options),
        "seeds": seeds(options),
        "columns": numbers,
        "beside": {
            key: beside_document(rows[_row_name(*key.split(", ", 1))]["mean_log"]["each"], document)
            for key, document in DOCUMENT_LPPD.items()
        },
        "verdicts": [
            verdict for column, each in numbers.items() for verdict in _judge(each["rows"], seeds(options), column)
        ],
    }


def _column(options: ReplicationOptions, column: str) -> dict[str, Any]:
    by_noise = {noise: belief_records(options, column, fleet) for noise, fleet in FLEETS.items()}
    return {
        "bands": {noise: band_fields(by_noise[noise][f"{DEFAULT_PRIOR}"][0]) for noise in ("local", "shared")},
        "rows": {
            _row_name(noise, f"−log σ = {p}"): {
                **{key: _over_seeds([r["densities"][key] for r in rows]) for key in (*METRICS, "lppd_inside")},
                **{key: summary([r[key] for r in rows]) for key in WIDTHS},
            }
            for p in PRIORS
            for noise, records in by_noise.items()
            for rows in [records[p]]
        },
    }


def _row_name(noise: str, prior: str) -> str:
    return f"{noise}, {prior}"


def _over_seeds(values: Sequence[float]) -> dict[str, Any]:
    return summary(values) | {"each": values}


def _judge(rows: Mapping[str, Any], belief_seeds: Sequence[int], column: str) -> list[Verdict]:
    return [
        LOWER_LPPD.decide(
            {
                f"local less shared, −log σ = {p}": paired(
                    *(rows[_row_name(noise, f"−log σ = {p}")][metric]["each"] for noise in ("local", "shared")),
                    below=0.0,
                )
                for p in PRIORS
            },
            belief_seeds,
            column,
            f"{words}; pairs of the same seed",
        )
        for metric, words in METRICS.items()
    ]


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    if "beside" in result["numbers"]:
        caption = (
            "The mean of log densities. The document holds −26.03 against −3.21, which is another prior's; like for "
            "like it is −16.21, the mean of −12.74, −20.49 and −15.39."
        )
        elements.append(comparison_table("As run", result["numbers"]["beside"], caption, first="noise, prior"))
    for column, numbers in columns(result).items():
        elements += [
            band_chart(f"{name.capitalize()} noise, {column}", spread_caption(entry), entry)
            for name, entry in numbers["bands"].items()
        ]
        elements.append(_table(column, numbers["rows"]))
    return elements


def _table(column: str, entries: Mapping[str, Any]) -> ResultTable:
    rows = [
        [
            name,
            format_with_error(entry["mean_log"], 2) if "mean_log" in entry else "–",
            format_with_error(entry["lppd"], 2),
            f"{entry['lppd_inside']['mean']:.2f}",
            *(f"{entry[key]['mean']:.3g}" for key in WIDTHS),
        ]
        for name, entry in entries.items()
    ]
    headers = ("noise, prior", "mean of logs", "lppd", "amid the data", "middle half, amid", "middle half, away")
    return ResultTable(f"Noise while learning, mean over seeds, {column}", headers, rows)


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-14",
    order=14,
    group="regression",
    title="What a belief learned by local reparameterisation expects of the curve",
    requirements=("WU-39",),
    run=run,
    claims=(LOWER_LPPD,),
    reference={
        "mean of log densities": DOCUMENT_LPPD,
        "lppd of the authors' nets": {"local, −log σ = 1": -0.03, "shared, −log σ = 1": -0.01},
        "note": "the document holds −26.03 against −3.21, which is another prior's: like for like it is −16.21. The "
        "authors' net of −26.03 was kept at epoch 1,480",
    },
    left_open=(
        "how a bias enters: as run it is drawn once a pass, and the variance of an activation is that of weights "
        "alone; as written and chosen each row has its own noise of the bias too",
        "what predicts: draws of the weights, in every column",
    ),
    departures={"full": (SEEDS_AS_RUN,)},
    durations=("some seconds", "five minutes on a GPU"),
    show=show,
)
