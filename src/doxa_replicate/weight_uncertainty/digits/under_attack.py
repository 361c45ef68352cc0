"""Figure 22: accuracy under attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, number
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.digits.calibration import infinite
from doxa_replicate.weight_uncertainty.digits.choice import columns
from doxa_replicate.weight_uncertainty.digits.models import MODELS
from doxa_replicate.weight_uncertainty.digits.weight_histograms import NAMES

STANDS = 80.0
ROBUST = Claim(
    "C-WU-20",
    "A belief stands adversarial examples better",
    "fall of accuracy at radius 0.05: belief below dropout below plain net; at 0.10 the belief is right on at least "
    f"{STANDS:g} %",
)
TITLES = {"transfer": "gradients of another net", "white_box": "gradients of the net itself"}


def run(ask: Ask) -> Numbers:
    both = columns(ask, NAMES)
    found = both["as written"]
    seeds = [cell["seed"] for cell in found["plain"]]
    falls = {
        name: [c["transfer"]["0.05"]["error"] - c["transfer"]["0"]["error"] for c in own] for name, own in found.items()
    }
    stands = [100 - c["transfer"]["0.1"]["error"] for c in found["gaussian"]]
    ordered = mean(falls["gaussian"]) < mean(falls["dropout"]) < mean(falls["plain"])
    return {
        "settings": {"units": 1200, "source": "LeNet-5" if ask.full else "a small CNN", "pixels": "kept in [0, 1]"},
        "seeds": seeds,
        "attacks": {
            f"{TITLES[attack]}, {column}": {
                name: {
                    radius: {key: mean([c[attack][radius][key] for c in own]) for key in ("error", "nll", "ece")}
                    for radius in own[0][attack]
                }
                for name, own in trained.items()
            }
            for attack in TITLES
            for column, trained in both.items()
        },
        "verdicts": [
            ROBUST.judged(
                ordered and mean(stands) >= STANDS,
                {f"fall, {name}": mean(v) for name, v in falls.items()} | {"belief at 0.10": mean(stands)},
                max(error(v) or 0.0 for v in falls.values()),
                seeds,
                "as written; points of accuracy, gradients of a LeNet-5",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    attacks = found["numbers"]["attacks"]
    charts = [
        Chart(
            attack.capitalize(),
            _says(own),
            "radius",
            "accuracy, %",
            [
                Line(MODELS[name].title, [float(r) for r in of], [100 - v["error"] for v in of.values()])
                for name, of in own.items()
            ],
            y_limits=(0, 100),
        )
        for attack, own in attacks.items()
    ]
    rows = [
        [attack, MODELS[name].title, radius, f"{v['error']:.2f}", number(v["nll"], 3), f"{v['ece']:.2f}"]
        for attack, own in attacks.items()
        for name, of in own.items()
        for radius, v in of.items()
    ]
    heads = ("attack", "net", "radius", "error %", "NLL", "ECE %")
    return [*charts, Table("Scores", heads, rows, words=2, says=infinite(rows))]


def _says(own: Mapping[str, Any]) -> str:
    return (
        "Right at 0.1: "
        + ", ".join(f"{MODELS[n].title} {100 - of['0.1']['error']:.1f} %" for n, of in own.items())
        + "."
    )


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-22",
    place=29,
    group="mnist",
    title="Accuracy against the radius of a fast gradient sign attack",
    rows=("WU-55", "WU-20"),
    run=run,
    claims=(ROBUST,),
    reference={
        "fall at 0.05, points": {"belief": 2, "plain": 12, "dropout": 6},
        "right at 0.10, %": {"belief": 84},
    },
    left_open=(
        "the net whose gradients are used: a LeNet-5, five epochs",
        "whether pixels are kept in range: they are",
        "the net's own gradients, as control: 2,000 rows, 20 draws",
    ),
    takes=("some seconds", "22 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
