"""Was the original paper's single Gaussian a narrow one?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.digits.cells import cells
from doxa_replicate.weight_uncertainty.digits.mnist_error import ORIGINAL, row
from doxa_replicate.weight_uncertainty.digits.models import MODELS, WIDTHS, narrow

NARROWER = Claim(
    "C-WU-28",
    "The original paper's single Gaussian was narrow, as narrow as its mixture's second part",
    "at each width some prior with −log σ of 6, 7 or 8 has an error nearer to the original's than N(0, 1) has",
)


def run(ask: Ask) -> Numbers:
    tried = {width: ("gaussian", *narrow(width)) for width in WIDTHS}
    rows = {f"{name}, {width}": row(cells(ask, name, width)) for width in WIDTHS for name in tried[width]}
    errors = {width: {name: rows[f"{name}, {width}"]["error"]["mean"] for name in tried[width]} for width in WIDTHS}
    distance = {
        width: {name: abs(found - ORIGINAL["gaussian"][k]) for name, found in errors[width].items()}
        for k, width in enumerate(WIDTHS)
    }
    nearest = {width: min(own, key=lambda name: own[name]) for width, own in distance.items()}
    return {
        "settings": {"epochs": "as in table 3, as written"},
        "seeds": rows["gaussian, 400"]["seeds"],
        "rows": rows,
        "verdicts": [
            NARROWER.judged(
                all(name != "gaussian" for name in nearest.values()),
                {
                    str(width): {MODELS[name].title: found for name, found in own.items()}
                    for width, own in errors.items()
                },
                None,
                rows["gaussian, 400"]["seeds"],
                "as written; errors in per cent, one seed of the narrow prior at 800 and 1,200 units; the original has "
                "1.82, 1.99, 2.02",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    rows = []
    for key, of in found["numbers"]["rows"].items():
        name, _, width = key.partition(", ")
        own = [MODELS[name].title, width, f"{ORIGINAL['gaussian'][WIDTHS.index(int(width))]:.2f}"]
        rows.append([*own, f"{of['error']['mean']:.2f}", f"{of['nll']['mean']:.3f}", f"{of['ece']['mean']:.2f}"])
    return [Table("Test rows", ("net", "units", "original, error %", "error %", "NLL", "ECE %"), rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/narrow-prior",
    place=21,
    group="mnist",
    title="Single Gaussians as narrow as the mixture's second part",
    rows=("WU-44",),
    run=run,
    claims=(NARROWER,),
    reference={"error of the original paper, %": {"400": 1.82, "800": 1.99, "1200": 2.02}},
    departures={"full": ("at 800 and at 1,200 units only the mildest of the narrow priors, and one seed of it",)},
    takes=("some seconds", "20 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
