"""Figure 1: plain nets agree with each other where they know nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, drawn, spread_says
from doxa_replicate.weight_uncertainty.curve.trainings import PRIOR

TIMES = 3.0
OVERCONFIDENT = Claim(
    "C-WU-1",
    "Plain nets are sure of themselves away from the data; a belief is not",
    "inter-quartile range on [1, 1.5] ∪ [−0.5, −0.25] over that on [0, 0.5]: larger for the belief than for 25 plain "
    f"nets, and at least {TIMES:g} for the belief",
)


def run(ask: Ask) -> Numbers:
    plain = trainings.ensembles(ask, "plain")
    beliefs = {
        name: own[f"{PRIOR}" if name == "gaussian" else "1, 6"]
        for name, own in ((fleet, trainings.records(ask, fleet)) for fleet in ("gaussian", "mixture"))
    }
    ratios = {"plain": [r["iqr_ratio"] for r in plain]}
    ratios |= {name: [r["iqr_ratio"] for r in own] for name, own in beliefs.items()}
    ours, theirs = mean(ratios["gaussian"]), mean(ratios["plain"])
    absolute = {
        "belief": mean([r["iqr_outside"] for r in beliefs["gaussian"]]),
        "plain": mean([r["iqr_outside"] for r in plain]),
    }
    return {
        "settings": trainings.settings(ask)
        | {
            "ensemble": trainings.size(ask).ensemble,
            "ensembles": len(plain),
            "plain nets": f"Adam, {trainings.PLAIN_RATE:g}, halved alike",
        },
        "seeds": trainings.seeds(ask),
        "plain": drawn(plain[0]),
        "ratios": {name: summary(v) | {"each": v} for name, v in ratios.items()},
        "widths": {
            name: {key: mean([r[key] for r in own]) for key in ("iqr_inside", "iqr_outside")}
            for name, own in (("plain", plain), *beliefs.items())
        },
        "verdicts": [
            OVERCONFIDENT.judged(
                ours > theirs and ours >= TIMES,
                {"belief": ours, "plain": theirs} | {f"{name}, away": away for name, away in absolute.items()},
                {"belief": error(ratios["gaussian"]), "plain": error(ratios["plain"])},
                trainings.seeds(ask),
                f"prior N(0, e⁻²), against {trainings.size(ask).ensemble} plain nets of each of {len(plain)} seeds",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    plain, numbers = found["numbers"]["plain"], found["numbers"]
    rows = [
        [name, f"{own['iqr_inside']:.3g}", f"{own['iqr_outside']:.3g}", f"{numbers['ratios'][name]['mean']:.3g}"]
        for name, own in numbers["widths"].items()
    ]
    heads = ("who", "amid the data", "away", "times, mean over seeds")
    return [
        band_chart(f"{found['settings']['ensemble']} plain nets", spread_says(plain), plain),
        Table("Width of the middle half: plain nets, and beliefs with either prior", heads, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-1",
    place=1,
    group="regression",
    title="Twenty-five plain nets, trained apart, on the curve",
    rows=(
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
    takes=("some seconds", "four minutes on a GPU"),
    show=show,
)
