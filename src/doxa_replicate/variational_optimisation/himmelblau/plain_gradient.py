"""Himmelblau's function with plain gradients by mean and variance: as the scale falls, steps grow without bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.show import Shown, Table
from doxa_replicate.variational_optimisation.himmelblau import searches
from doxa_replicate.variational_optimisation.himmelblau.charts import (
    choice_table,
    drawn,
    path_chart,
    said,
    scale_chart,
    summary,
    value_chart,
)
from doxa_replicate.variational_optimisation.himmelblau.searches import STAY, Rates

FLOORS = (1e-2, 1e-4, 1e-6)


def run(ask: Ask) -> Numbers:
    of = searches.found(ask, "plain")
    rates = Rates(**of["rates"])
    return {
        "settings": searches.settings(ask),
        "seeds": searches.seeds(ask),
        **drawn(of),
        "growth": growth(of),
        "before": before(of),
        "lasted": [len(one["f"]) - 1 for one in of["seeds"]],
        "reached": [searches.reached(one) for one in of["seeds"]],
        "with_floor": {f"{least:g}": searches.with_floor(ask, least, rates) for least in FLOORS},
    }


def growth(of: Mapping[str, Any]) -> list[float]:
    """The norm of ∂U/∂mean where σ is first as small as it gets, over that of the first step; for each seed."""
    return [one["gradient"][smallest(one)] / one["gradient"][0] for one in of["seeds"]]


def before(of: Mapping[str, Any]) -> list[float]:
    """The same of the twenty steps that lead there, by their median."""
    return [
        median(one["gradient"][max(0, smallest(one) - STAY) : smallest(one)] or [math.nan]) / one["gradient"][0]
        for one in of["seeds"]
    ]


def smallest(one: Mapping[str, Any]) -> int:
    """The first step with the smallest σ of all."""
    found: int = one["scale"].index(min(one["scale"]))
    return found


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    steps, lasted = found["settings"]["steps"], numbers["lasted"]
    broken = sum(one < steps for one in lasted)
    says = (
        f"It stays as low as {median(numbers['reached']):.2g} for twenty steps; {broken} of {len(lasted)} searches "
        "then left for infinity" + (f", in the median after {median(lasted):.0f} steps." if broken else ".")
    )
    grown = (
        f"At the smallest σ the gradient is {median(numbers['growth']):.2g} times as long as at the start, in the "
        f"median over seeds; in the twenty steps before, {median(numbers['before']):.2g} times."
    )
    rows = [[said(float(least) ** 0.5), *summary(ends)] for least, ends in numbers["with_floor"].items()]
    return [
        path_chart(numbers),
        value_chart(numbers, says, (1e-4, 1e12)),
        scale_chart(numbers, grown, (1e-7, 1e12)),
        Table(
            "f at the end where σ is kept from falling below a floor, at the same rates",
            ("σ at least", "median", "lowest", "highest"),
            rows,
            says="What a floor does is no part of the document.",
        ),
        choice_table(numbers),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/himmelblau-plain",
    place=7,
    group="functions",
    title="Himmelblau's function, searched with plain gradients by mean and variance",
    rows=("VO-09", "VO-15", "VO-18"),
    run=run,
    reference={
        "document": "a minimum is found, and then the variance is driven towards zero, which makes gradients larger "
        "and more uncertain; no numbers are printed"
    },
    left_open=(
        "start, σ at the start and N: as with the fixed scale; one σ for both coordinates",
        "the rate η, and whether mean and variance share it: of 25 pairs the one at which f stays lowest for twenty "
        "steps, in the median of four seeds that are not judged",
        "how far the grid of rates goes: the chosen rate of the variance, 1e-4, is its lowest; at 3e-5 σ is still 0.7 "
        "after 400 steps, and f stays above 1",
        "what happens where a step takes the variance below zero: it is taken as 1e-12",
        "which slope the variance has: (1/2Nσ²) Σ f (‖ε‖² − d), the derivative that the document's score does not have "
        "where it is first printed",
    ),
    takes=("a second", "a minute"),
    show=show,
)
