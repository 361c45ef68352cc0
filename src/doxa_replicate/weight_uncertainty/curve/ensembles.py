"""Figure 7: ensembles of plain nets, and of nets trained with dropout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import paired
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.trainings.ensembles import ensemble_records, ensemble_settings
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, seeds

LESS_SURE = Claim(
    "C-WU-2",
    "Dropout makes an ensemble less sure of itself away from the data",
    "inter-quartile range on [1, 1.5] ∪ [−0.5, −0.25], with dropout less without: above 0",
)
TRAINED = COLUMNS[:2]  # nothing is chosen for these nets


def run(options: ReplicationOptions) -> Numbers:
    numbers = {column: _column(options, column) for column in TRAINED}
    return {
        "settings": {column: ensemble_settings(options, column) for column in TRAINED} | {"dropped": 0.5},
        "seeds": seeds(options),
        "columns": numbers,
        "verdicts": [_judge(each["widths"], seeds(options), column) for column, each in numbers.items()],
    }


def _column(options: ReplicationOptions, column: str) -> dict[str, Any]:
    plain, dropout = (ensemble_records(options, column, kind) for kind in ("plain", "dropout"))
    rows_by_kind = {
        "plain": plain,
        "dropout": dropout,
        "dropout, masks while predicting": [row["with_masks"] for row in dropout],
    }
    return {
        "plain": band_fields(plain[0]),
        "dropout": band_fields(dropout[0]),
        "widths": {
            name: {
                key: summary(values) | {"each": values}
                for key in ("iqr_inside", "iqr_outside", "iqr_ratio")
                for values in [[row[key] for row in rows]]
            }
            for name, rows in rows_by_kind.items()
        },
        "kept_at": {name: summary([row["kept_at"] for row in rows_by_kind[name]]) for name in ("plain", "dropout")},
    }


def _judge(widths: Mapping[str, Any], ensemble_seeds: Sequence[int], column: str) -> Verdict:
    dropout, plain = (widths[name]["iqr_outside"]["each"] for name in ("dropout", "plain"))
    gaps = {"dropout less plain": paired(dropout, plain, above=0.0)}
    return LESS_SURE.decide(gaps, ensemble_seeds, column, "nothing is dropped while predicting")


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [element for column, numbers in columns(result).items() for element in _show_column(column, numbers)]


def _show_column(column: str, numbers: Mapping[str, Any]) -> list[PageElement]:
    rows = [
        [name, *(f"{widths[key]['mean']:.3g}" for key in ("iqr_inside", "iqr_outside", "iqr_ratio"))]
        for name, widths in numbers["widths"].items()
    ]
    headers = ("nets", "amid the data", "away", "times")
    return [
        band_chart(f"Plain nets, {column}", spread_caption(numbers["plain"]), numbers["plain"]),
        band_chart(f"Trained with dropout, {column}", spread_caption(numbers["dropout"]), numbers["dropout"]),
        ResultTable(f"Width of the middle half, mean over seeds, {column}", headers, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-7",
    order=5,
    group="regression",
    title="Ensembles of plain nets and of nets trained with dropout",
    requirements=("WU-30",),
    run=run,
    claims=(LESS_SURE,),
    reference={"document": "plain nets are overconfident, dropout somewhat less; no numbers are printed"},
    left_open=(
        "whether units are dropped while predicting: not in the figure, as the authors had it; the table has both",
        "which recipe: as run a constant 1e-3 and 1,000 epochs, each net as it stood at its lowest last-minibatch "
        "loss; as written 1e-3, halved after every third of 1,500 epochs. Nothing is chosen",
    ),
    departures={
        "full": ("as run seeds differ in start, batch order and masks; the authors' nets differ in the start alone",)
    },
    durations=("some seconds", "four minutes on a GPU"),
    show=show,
)
