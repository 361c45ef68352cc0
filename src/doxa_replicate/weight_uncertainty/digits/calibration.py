"""Figure 19: are scores probabilities?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, number
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.digits.cells import Cell
from doxa_replicate.weight_uncertainty.digits.choice import columns
from doxa_replicate.weight_uncertainty.digits.models import MODELS
from doxa_replicate.weight_uncertainty.digits.rows import TURNED
from doxa_replicate.weight_uncertainty.digits.weight_histograms import NAMES

DIGITS = {"error": 2, "nll": 3, "ece": 2, "ece_classwise": 2}
SETS, KINDS = {"clean": "test", "shifted": "shifted"}, ("top", "all classes")
SEVENTY = 0.75  # at most so many right would be about 70 %
BETTER = Claim(
    "C-WU-15",
    "A belief is better calibrated than a plain net and than dropout",
    f"ECE of the likeliest class below both, on clean test rows and on rows turned by {TURNED:g}°",
)
SEVENTY_PER_CENT = Claim(
    "C-WU-16",
    "Of what a plain net is quite sure, only 70 % is right",
    f"accuracy of the likeliest class in the uppermost of ten bins, clean test rows: at most {100 * SEVENTY:g} %",
)


def run(ask: Ask) -> Numbers:
    both = columns(ask, NAMES)
    found = both["as written"]
    seeds = [cell["seed"] for cell in found["plain"]]
    ece = {which: {name: [c[row]["ece"] for c in own] for name, own in found.items()} for which, row in SETS.items()}
    sure = known([cell["reliability"]["clean"]["top"]["accuracy"][-1] for cell in found["plain"]])
    best = {which: min(own, key=lambda name: mean(own[name])) for which, own in ece.items()}
    return {
        "settings": {"units": 1200, "bins": {"drawn": 10, "ECE": 15}, "shifted": f"turned by {TURNED:g}°"},
        "seeds": seeds,
        "columns": {column: calibration(own) for column, own in both.items()},
        "verdicts": [
            BETTER.judged(
                all(name == "gaussian" for name in best.values()),
                {f"{which}, {name}": mean(v) for which, own in ece.items() for name, v in own.items()},
                max(error(v) or 0.0 for own in ece.values() for v in own.values()),
                seeds,
                "as written; ECE in per cent, fifteen bins",
            ),
            SEVENTY_PER_CENT.judged(
                mean(sure) <= SEVENTY if sure else None,
                100 * mean(sure) if sure else None,
                100 * (error(sure) or 0.0),
                seeds,
                "as written; a net wrong on 2 % cannot be right on only 70 % of nearly all rows",
            ),
        ],
    }


def calibration(found: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    """Diagrams of the first seed; scores and the uppermost bin, means over seeds."""
    return {
        "reliability": {name: own[0]["reliability"] for name, own in found.items()},
        "scores": {
            which: {name: {key: mean([c[row][key] for c in own]) for key in DIGITS} for name, own in found.items()}
            for which, row in SETS.items()
        },
        "top_bin": {
            which: {
                name: {
                    kind: {
                        "accuracy": average([c["reliability"][which][kind]["accuracy"][-1] for c in own]),
                        "share": mean([_share(c["reliability"][which][kind]["count"]) for c in own]),
                    }
                    for kind in KINDS
                }
                for name, own in found.items()
            }
            for which in SETS
        },
    }


def known(values: Sequence[float | None]) -> list[float]:
    """Those of bins that are not empty."""
    return [v for v in values if v is not None]


def average(values: Sequence[float | None]) -> float | None:
    return mean(known(values)) if known(values) else None


def _share(counts: Sequence[int]) -> float:
    return counts[-1] / sum(counts)


def infinite(rows: Sequence[Sequence[str]]) -> str:
    """What ∞ means, where it stands in a table."""
    return "∞: some right answer had the probability 0 in single precision." if "∞" in str(rows) else ""


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    both = found["numbers"]["columns"]
    drawn = [("as written", which, kind) for which in SETS for kind in KINDS] + [
        ("chosen", which, "top") for which in SETS
    ]
    rows = [
        [which, MODELS[name].title, column, *(number(of[key], places) for key, places in DIGITS.items())]
        for column, numbers in both.items()
        for which, own in numbers["scores"].items()
        for name, of in own.items()
    ]
    heads = ("rows", "net", "trained", "error %", "NLL", "ECE %", "ECE % by class")
    charts = [_chart(both[one[0]], *one) for one in drawn]
    return [*charts, Table("Scores", heads, rows, words=3, says=infinite(rows))]


def _chart(numbers: Mapping[str, Any], column: str, which: str, kind: str) -> Chart:
    lines = [
        Line(MODELS[name].title, own[which][kind]["confidence"], own[which][kind]["accuracy"])
        for name, own in numbers["reliability"].items()
    ]
    lines.append(Line("what was said", [0, 1], [0, 1], dashed=True))
    title, says = f"{which}, {kind}, {column}".capitalize(), _says(numbers["top_bin"][which], kind)
    return Chart(title, says, "score", "share right", lines, x_limits=(0, 1), y_limits=(0, 1))


def _says(top: Mapping[str, Any], kind: str) -> str:
    said = ", ".join(
        f"{MODELS[name].title} {100 * of[kind]['accuracy']:.1f} % ({100 * of[kind]['share']:.0f} % of all)"
        for name, of in top.items()
        if of[kind]["accuracy"] is not None
    )
    return f"Right in the uppermost bin: {said or 'nothing, since it is empty'}."


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-19",
    place=25,
    group="mnist",
    title="Calibration on clean and on turned digits",
    rows=("WU-52",),
    run=run,
    claims=(BETTER, SEVENTY_PER_CENT),
    reference={
        "right at a score of about 1, %": {"plain": 70, "dropout": 90, "belief": 100},
        "note": "a net that is wrong on 1.83 % cannot be right on 70 % of the bin that holds nearly all rows",
    },
    left_open=(
        "which scores are sorted into bins, and of which rows: the likeliest class, all classes, clean, turned",
    ),
    takes=("some seconds", "22 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
