"""Figure 1: plain nets agree with each other where they know nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean, standard_error, summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.trainings import DEFAULT_PRIOR

LEAST_RATIO = 3.0
OVERCONFIDENT = Claim(
    "C-WU-1",
    "Plain nets are sure of themselves away from the data; a belief is not",
    "inter-quartile range on [1, 1.5] ∪ [−0.5, −0.25] over that on [0, 0.5]: larger for the belief than for 25 plain "
    f"nets, and at least {LEAST_RATIO:g} for the belief",
)


def run(options: ReplicationOptions) -> Numbers:
    plain = trainings.ensemble_records(options, "plain")
    beliefs = {
        name: records[f"{DEFAULT_PRIOR}" if name == "gaussian" else "1, 6"]
        for name, records in ((fleet, trainings.belief_records(options, fleet)) for fleet in ("gaussian", "mixture"))
    }
    ratios = {"plain": [r["iqr_ratio"] for r in plain]}
    ratios |= {name: [r["iqr_ratio"] for r in records] for name, records in beliefs.items()}
    belief_ratio, plain_ratio = mean(ratios["gaussian"]), mean(ratios["plain"])
    iqr_outside = {
        "belief": mean([r["iqr_outside"] for r in beliefs["gaussian"]]),
        "plain": mean([r["iqr_outside"] for r in plain]),
    }
    return {
        "settings": trainings.common_settings(options)
        | {
            "ensemble": trainings.curve_size(options).ensemble,
            "ensembles": len(plain),
            "plain nets": f"Adam, {trainings.PLAIN_RATE:g}, halved alike",
        },
        "seeds": trainings.seeds(options),
        "plain": band_fields(plain[0]),
        "ratios": {name: summary(v) | {"each": v} for name, v in ratios.items()},
        "widths": {
            name: {key: mean([r[key] for r in records]) for key in ("iqr_inside", "iqr_outside")}
            for name, records in (("plain", plain), *beliefs.items())
        },
        "verdicts": [
            OVERCONFIDENT.judge(
                belief_ratio > plain_ratio and belief_ratio >= LEAST_RATIO,
                {"belief": belief_ratio, "plain": plain_ratio}
                | {f"{name}, away": away for name, away in iqr_outside.items()},
                {"belief": standard_error(ratios["gaussian"]), "plain": standard_error(ratios["plain"])},
                trainings.seeds(options),
                f"prior N(0, e⁻²), against {trainings.curve_size(options).ensemble} plain nets of each of "
                f"{len(plain)} seeds",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    plain, numbers = result["numbers"]["plain"], result["numbers"]
    rows = [
        [name, f"{widths['iqr_inside']:.3g}", f"{widths['iqr_outside']:.3g}", f"{numbers['ratios'][name]['mean']:.3g}"]
        for name, widths in numbers["widths"].items()
    ]
    headers = ("who", "amid the data", "away", "times, mean over seeds")
    return [
        band_chart(f"{result['settings']['ensemble']} plain nets", spread_caption(plain), plain),
        ResultTable("Width of the middle half: plain nets, and beliefs with either prior", headers, rows),
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
        "learning rate and epochs of plain nets: 1e-3, halved after every third of as many epochs",
    ),
    durations=("some seconds", "four minutes on a GPU"),
    show=show,
)
