"""Figure 1: plain nets agree with each other where they know nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import Evidence, paired
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import belief_records, settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.ensembles import ensemble_records, ensemble_settings
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, DEFAULT_PRIOR, SEEDS_AS_RUN, seeds

LEAST_RATIO = 3.0
OVERCONFIDENT = Claim(
    "C-WU-1",
    "Plain nets are sure of themselves away from the data; a belief is not",
    "inter-quartile range on [1, 1.5] ∪ [−0.5, −0.25] over that on [0, 0.5]: of the belief less that of 25 plain nets "
    f"above 0, and of the belief above {LEAST_RATIO:g}",
)


def run(options: ReplicationOptions) -> Numbers:
    numbers = {column: _column(options, column) for column in COLUMNS}
    return {
        "settings": settings_by_column(options)
        | {f"ensembles {column}": ensemble_settings(options, column) for column in COLUMNS[:2]},
        "seeds": seeds(options),
        "columns": numbers,
        "verdicts": [_judge(each["ratios"], seeds(options), column) for column, each in numbers.items()],
    }


def _column(options: ReplicationOptions, column: str) -> dict[str, Any]:
    plain = ensemble_records(options, column, "plain")
    records = {
        "plain": plain,
        "gaussian": belief_records(options, column, "gaussian")[f"{DEFAULT_PRIOR}"],
        "mixture": belief_records(options, column, "mixture")["1, 6"],
    }
    ratios = {name: [r["iqr_ratio"] for r in rows] for name, rows in records.items()}
    return {
        "plain": band_fields(plain[0]),
        "ratios": {name: summary(v) | {"each": v} for name, v in ratios.items()},
        "widths": {
            name: {key: mean([r[key] for r in rows]) for key in ("iqr_inside", "iqr_outside")}
            for name, rows in records.items()
        },
    }


def _judge(ratios: Mapping[str, Any], belief_seeds: Sequence[int], column: str) -> Verdict:
    belief = ratios["gaussian"]["each"]
    plain = ratios["plain"]["each"]
    evidence = {
        "belief less plain nets": paired(belief, plain, above=0.0),
        "belief": Evidence(belief, above=LEAST_RATIO),
    }
    return OVERCONFIDENT.decide(evidence, belief_seeds, column, "times; prior N(0, e⁻²)")


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [element for column, numbers in columns(result).items() for element in _show_column(column, numbers)]


def _show_column(column: str, numbers: Mapping[str, Any]) -> list[PageElement]:
    plain = numbers["plain"]
    rows = [
        [name, f"{widths['iqr_inside']:.3g}", f"{widths['iqr_outside']:.3g}", f"{numbers['ratios'][name]['mean']:.3g}"]
        for name, widths in numbers["widths"].items()
    ]
    headers = ("who", "amid the data", "away", "times, mean over seeds")
    return [
        band_chart(f"Twenty-five plain nets, {column}", spread_caption(plain), plain),
        ResultTable(f"Width of the middle half: plain nets, and beliefs with either prior, {column}", headers, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-1",
    order=1,
    group="regression",
    title="Twenty-five plain nets, trained apart, on the curve",
    requirements=(
        "WU-26",
        "WU-27",
    ),
    run=run,
    claims=(OVERCONFIDENT,),
    reference={"document": "very little spread among the nets away from the data; no numbers are printed"},
    left_open=(
        "the prior of the belief that they are held against: N(0, e⁻²), the middle one of three",
        "learning rate and epochs of plain nets: as run a constant 1e-3 and 1,000 epochs, each net as it stood at its "
        "lowest last-minibatch loss; as written 1e-3, halved after every third of 1,500; chosen as written",
        "where x lies: evenly on [0, 0.5] as run, and one data set for all seeds, as the authors had one; at random as "
        "written, and a data set for each seed",
    ),
    departures={"full": (SEEDS_AS_RUN,)},
    durations=("some seconds", "fifteen minutes on a GPU, shared with the other figures"),
    show=show,
)
