"""Himmelblau's function with natural gradients: the scale falls, and the search comes to rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
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
from doxa_replicate.variational_optimisation.himmelblau.plain_gradient import before, growth
from doxa_replicate.variational_optimisation.himmelblau.searches import ends

LOW, TIMES = 0.05, 10.0
NARROW = 0.1  # a smaller scale that stays, to compare with
SETTLES = Claim(
    "C-VO-3",
    "With a fixed scale a search hovers, with plain gradients it blows up as its scale falls, with natural ones it "
    "settles",
    f"median over seeds of f at the end: natural below {LOW:g}, fixed at least {TIMES:g} times natural; with plain "
    "gradients the norm by the mean is larger than at the start, in the median: where σ is first smallest, and in the "
    "twenty steps that lead there, judged apart",
)


def run(ask: Ask) -> Numbers:
    by = {gradient: searches.found(ask, gradient) for gradient in searches.GRADIENTS}
    found = {gradient: ends(of) for gradient, of in by.items()}
    narrow = median(ends(searches.found(ask, "fixed", NARROW)))
    middle = {gradient: median(values) for gradient, values in found.items()}
    grown = {
        "where σ is first smallest, which is where a step took the variance below zero": median(growth(by["plain"])),
        "in the twenty steps before, of which each has a variance of its own": median(before(by["plain"])),
    }
    return {
        "settings": searches.settings(ask),
        "seeds": searches.seeds(ask),
        **drawn(by["natural"]),
        "all_ends": found,
        "rates_of": {gradient: of["rates"] for gradient, of in by.items()},
        "verdicts": [
            SETTLES.judged(
                middle["natural"] < LOW and middle["fixed"] >= TIMES * middle["natural"] and times > 1,
                {f"f, {gradient}": said(value) for gradient, value in middle.items()}
                | {"growth of plain gradients": times, f"f, fixed at σ = {NARROW:g}": said(narrow)},
                None,
                searches.seeds(ask),
                f"growth {where}. All three from (0, 0) and σ = 1, each at its best rates; ∞: not finite at the end. "
                "A scale fixed at 0.1 stands there to compare, and is not judged",
            )
            for where, times in grown.items()
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = []
    for gradient, column in numbers["all_ends"].items():
        rates = numbers["rates_of"][gradient]
        rows.append([gradient, f"{rates['mean']:g}", f"{rates['scale']:g}", *summary(column)])
    middle, _, highest = summary(numbers["ends"])
    says = f"At the end {middle} in the median, {highest} at most."
    ways = [f"{name} goes from {of[0]:.2g} to {of[1]:.2g}" for name, of in ends_of(numbers).items()]
    return [
        path_chart(numbers),
        value_chart(numbers, says),
        scale_chart(numbers, f"{', and '.join(ways)}."),
        Table(
            "f at the end of all three searches",
            ("search", "rate of the mean", "of the variance", "median", "lowest", "highest"),
            rows,
            says="∞: it was not finite at the end.",
        ),
        choice_table(numbers),
    ]


def ends_of(numbers: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """σ and the norm of ∂U/∂mean at the first step, and in the median of the last twenty."""
    return {
        name: (numbers[key][0], median(numbers[key][-20:])) for name, key in (("σ", "scale"), ("‖∂U/∂μ‖", "gradient"))
    }


ARTEFACT = Artefact(
    name="variational-optimisation/himmelblau-natural",
    place=8,
    group="functions",
    title="Himmelblau's function, searched with natural gradients",
    rows=("VO-20", "VO-21", "VO-22", "VO-23"),
    run=run,
    claims=(SETTLES,),
    reference={"document": "a minimum is found, σ falls to zero and the search converges; no numbers are printed"},
    left_open=(
        "start, σ at the start and N: as with the fixed scale; one σ for both coordinates, whose Fisher information "
        "is d/2σ⁴ by σ²",
        "the rate η, and whether mean and variance share it: chosen as for plain gradients, from the same 25 pairs",
        "how far the grid of rates goes: the chosen rate of the mean, 3e-2, is its highest; at 0.1 trials broke",
        "where plain gradients are to have grown: on the way to a minimum the gradient shortens with f, although σ "
        "falls; it grows in the last steps alone, when the variance has been driven below zero and is taken as 1e-12. "
        "Both are judged",
        "how wide the fixed scale is: it decides what the comparison says, for at σ = 0.1 it comes as low as natural "
        "gradients do",
        "inside the expectation the document prints f(μ + σ²σε): f(μ + σε) is taken, as in its own estimate",
    ),
    takes=("some seconds", "two minutes"),
    show=show,
)
