"""The standard regression benchmark: variational, dropout and ensemble on seven sets and their published splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error
from doxa_replicate.parts import kept
from doxa_replicate.weight_uncertainty.uci_regression import methods
from doxa_replicate.weight_uncertainty.uci_regression.contest import (
    CHOOSING,
    TESTING,
    WIDENINGS,
    Contest,
    Size,
    contest,
)
from doxa_replicate.weight_uncertainty.uci_regression.published import (
    SETS,
    SOURCES,
    best_variational,
)
from doxa_replicate.weight_uncertainty.uci_regression.splits import FEW, FOLDS, standardised
from doxa_replicate.weight_uncertainty.uci_regression.tables import show

SIZES = {
    "bostonHousing": Size(width=50, batch=32, epochs=200),
    "concrete": Size(width=50, batch=32, epochs=200),
    "kin8nm": Size(width=50, batch=256, epochs=400),
    "naval-propulsion-plant": Size(width=50, batch=256, epochs=400),
    "power-plant": Size(width=50, batch=256, epochs=200),
    "protein-tertiary-structure": Size(width=100, batch=512, epochs=150),
    "wine-quality-red": Size(width=50, batch=64, epochs=100),
}
QUICK = {"bostonHousing": Size(width=50, batch=64, epochs=15)}
SPLITS = {"protein-tertiary-structure": 5}  # of the others there are 20
ENOUGH = 5

REACHED = Claim(
    "UCI-1",
    "Our variational log-likelihood reaches the best of Wu et al. (2019) on most of the sets",
    f"mean over splits ≥ best of Wu et al. (2019) − our standard error, on at least {ENOUGH} of the {len(SETS)} sets",
)


def run(ask: Ask) -> Numbers:
    sizes = SIZES if ask.full else QUICK
    asked = ask.these(2, 20)
    sets = {}
    for name, size in sizes.items():
        numbers = [n for n in asked if n < SPLITS.get(name, 20)]
        sets[name] = {method: summary(part(ask, name, method, size, numbers)) for method in methods.METHODS}
    reached = {name: reaches(name, own["variational"]["log_likelihood"]) for name, own in sets.items()}
    count = sum(reached.values())
    setting = "one hidden layer, settings chosen inside each training split"
    return {
        "settings": settings(ask.full) | {"sizes": {name: vars(size) for name, size in sizes.items()}},
        "seeds": asked,
        "sets": sets,
        "reached": reached,
        "verdicts": [REACHED.judged(count >= ENOUGH if ask.full else None, count, None, asked, setting)],
    }


def settings(full: bool) -> dict[str, Any]:
    """What all parts have in common."""
    return {
        "rate": methods.RATE,
        "start": methods.START,
        "members": methods.MEMBERS,
        "widenings": WIDENINGS,
        "draws": {"choosing": CHOOSING, "testing": TESTING},
        "set aside": {"share": 1 / FOLDS, "in turn, all of them, below": FEW},
        "candidates": {
            method: [str(each) for each in candidates(methods.one_hidden_layer(1, 1), full)]
            for method, candidates in methods.METHODS.items()
        },
    }


def part(ask: Ask, name: str, method: str, size: Size, numbers: Sequence[int]) -> dict[str, Any]:
    """A method's scores on each split of a set, kept."""
    common = settings(ask.full)
    common["candidates"] = common["candidates"][method]
    asked = {"set": name, "method": method, "splits": list(numbers), **vars(size), **common}

    def make() -> dict[str, Any]:
        found = contest(method, Contest(standardised(name, numbers), size, ask.device, ask.progress), ask.full)
        ask.say(f"{name}, {method}: log-likelihood {np.mean(found['log_likelihood']):.3f}")
        return found

    return kept(ask, f"{name}-{method}", asked, make)


def summary(rows: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Means over splits with their standard errors, each split's own, and how often each setting was chosen."""
    found: dict[str, Any] = {
        key: {"mean": float(np.mean(rows[key])), "se": error(rows[key]), "each": list(rows[key])}
        for key in ("log_likelihood", "rmse", "aside", "widening")
    }
    return found | {"chosen": dict(Counter(rows["setting"]).most_common())}


def reaches(name: str, own: Mapping[str, Any]) -> bool:
    """Whether a mean log-likelihood is the best of Wu et al. (2019), or within our standard error of it."""
    return bool(own["mean"] >= best_variational(name) - (own["se"] or 0.0))


ARTEFACT = Artefact(
    name="weight-uncertainty/uci-regression",
    place=35,
    title="The standard regression benchmark, beside published log-likelihoods and errors",
    rows=("G-10", "G-14"),
    run=run,
    claims=(REACHED,),
    reference={
        "note": "published figures stand in the tables below, from "
        + "; ".join(f"{method}: {source}" for method, source in SOURCES.items())
    },
    left_open=(
        "which rows choose the settings: a fifth of the training split, or all of them in turn where there are fewer "
        f"than {FEW:,}; then all training rows are learned from",
        "what is chosen there: KL weight or dropout rate, how the noise enters, how long to learn, whether the net "
        "tells the noise of each input, and by which factor that noise is widened",
        "what is not chosen: ReLU, a prior N(0, 1/fan-in), Adam at 0.01 falling along a cosine, batches and epochs of "
        "each set; with dropout and in an ensemble the net always tells the noise of each input",
        "targets on a grid, such as the marks of wine: a Gaussian density all the same, as published, and no noise "
        "below that of rounding, step/√12, so that no density bets on the grid",
    ),
    departures={"quick": ("one small set, two of its splits, fewer settings and epochs: it decides no claim",)},
    takes=("some seconds", "seven minutes on a GPU"),
    group="uci",
    show=show,
)
