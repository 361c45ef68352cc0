"""Figure 9: free energy against epochs for three scales of the likelihood's noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import best_of
from doxa_replicate.weight_uncertainty.curve.bands import curves_chart
from doxa_replicate.weight_uncertainty.curve.densities import METRICS
from doxa_replicate.weight_uncertainty.curve.losses import LOSS_OF_COLUMN, LOSSES, loss_ends, mean_losses
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.compared import records_by_noise
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, KL_AS_RUN, NOISE, SEEDS_AS_RUN, seeds

BEST_NOISE = Claim(
    "C-WU-3",
    "A likelihood noise of 0.1 is the best of 0.01, 0.1 and 1",
    "of 0.1 less each other one: the loss that a column learns to lower, at the end, below 0 (as run that of the last "
    "minibatch, else the free energy, the Gaussian's constant included), and the density above 0; the mean of log "
    "densities, as printed, and the lppd are judged apart",
)


def run(options: ReplicationOptions) -> Numbers:
    numbers = {column: _column(options, column) for column in COLUMNS}
    return {
        "settings": settings_by_column(options),
        "seeds": seeds(options),
        "columns": numbers,
        "verdicts": [verdict for column, each in numbers.items() for verdict in _judge(each, seeds(options), column)],
    }


def _column(options: ReplicationOptions, column: str) -> dict[str, Any]:
    records_by_scale = records_by_noise(options, column)
    densities = {
        metric: {scale: [r["densities"][metric] for r in rows] for scale, rows in records_by_scale.items()}
        for metric in METRICS
    }
    return {
        **{loss: mean_losses(records_by_scale, loss) for loss in LOSSES},
        "ends": {loss: loss_ends(records_by_scale, loss) for loss in LOSSES},
        **{
            metric: {scale: summary(values) | {"each": values} for scale, values in by_scale.items()}
            for metric, by_scale in densities.items()
        },
        "lppd_inside": {
            s: summary([r["densities"]["lppd_inside"] for r in rows]) for s, rows in records_by_scale.items()
        },
    }


def _judge(numbers: Mapping[str, Any], belief_seeds: Sequence[int], column: str) -> list[Verdict]:
    loss, chosen = LOSS_OF_COLUMN[column], f"{NOISE:g}"
    ends = {scale: end["each"] for scale, end in numbers["ends"][loss].items()}
    energy = {f"{LOSSES[loss]}, {name}": each for name, each in best_of(ends, chosen, highest=False).items()}
    return [
        BEST_NOISE.decide(
            energy
            | {
                f"{words}, {name}": each
                for name, each in best_of({s: v["each"] for s, v in numbers[metric].items()}, chosen).items()
            },
            belief_seeds,
            column,
            words,
        )
        for metric, words in METRICS.items()
    ]


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    for column, numbers in columns(result).items():
        if "ends" not in numbers:
            elements.append(_chart("Free energy", column, numbers["free_energy"], numbers["final"]))
            continue
        loss = LOSS_OF_COLUMN[column]
        elements.append(_chart(LOSSES[loss].capitalize(), column, numbers[loss], numbers["ends"][loss]))
        elements.append(_table(column, numbers))
    return elements


def _chart(title: str, column: str, curves: Mapping[str, Any], ends: Mapping[str, Any]) -> PageElement:
    finals_text = ", ".join(f"{end['mean']:,.0f} with {scale}" for scale, end in ends.items())
    points_by_name = {f"σ_ε = {scale}": points for scale, points in curves.items()}
    is_positive = all(y > 0 for points in curves.values() for _, y in points)
    return curves_chart(f"{title}, {column}", f"At the end {finals_text}.", "nats", points_by_name, log_y=is_positive)


def _table(column: str, numbers: Mapping[str, Any]) -> ResultTable:
    rows = [
        [
            scale,
            f"{DOCUMENT_END[scale]:,.1f}" if column == AS_RUN else "–",
            *(f"{numbers['ends'][loss][scale]['mean']:,.1f}" for loss in LOSSES),
            *(f"{numbers[metric][scale]['mean']:,.2f}" for metric in METRICS),
            f"{numbers['lppd_inside'][scale]['mean']:.2f}",
        ]
        for scale in numbers["lppd"]
    ]
    headers = ("σ_ε", "the authors' last minibatch", *LOSSES.values(), *METRICS.values(), "lppd amid the data")
    return ResultTable(f"At the end, mean over seeds, {column}", headers, rows)


DOCUMENT_END = {"0.01": 2783.0, "0.1": -134.7, "1": 130.4}  # read off the authors' records
ARTEFACT = Artefact(
    name="weight-uncertainty/figure-9",
    order=7,
    group="regression",
    title="Free energy while learning, for three scales of the likelihood's noise",
    requirements=("WU-32",),
    run=run,
    claims=(BEST_NOISE,),
    reference={
        "document": "σ_ε = 0.1 ends lowest after 1,500 epochs; no numbers are printed",
        "note": "what is drawn as the ELBO is the loss of an epoch's last minibatch: 1/255 of the KL, and the summed "
        "NLL of its 128 points. By the mean of log densities the authors' own nets are best with σ_ε = 1",
        "last minibatch at the end": DOCUMENT_END,
    },
    left_open=("whether the Gaussian's constant is part of what is drawn: it is, else scales cannot be compared",),
    departures={"full": (SEEDS_AS_RUN, KL_AS_RUN)},
    durations=("some seconds", "four minutes on a GPU"),
    show=show,
)
