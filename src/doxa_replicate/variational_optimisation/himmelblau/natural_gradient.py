"""Himmelblau's function with natural gradients: the scale falls, and the search comes to rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.variational_optimisation.himmelblau import as_run, searches
from doxa_replicate.variational_optimisation.himmelblau.charts import (
    chart_numbers,
    choice_table,
    median_and_range,
    path_chart,
    scale_chart,
    value_chart,
)
from doxa_replicate.variational_optimisation.himmelblau.searches import final_values, log_gradient_growth
from doxa_replicate.verdicts import Evidence, paired

SETTLED = 0.1  # f at the end of a search that has come to rest
HOVERS_BETWEEN = (4.0, 21.0)  # where the author's script ends with a fixed scale
START_VALUE = 170.0  # f where all searches begin: no end counts as worse
NARROW_SCALE = 0.1  # a smaller scale that stays, to compare with
SETTLES = Claim(
    "C-VO-3",
    "With a fixed scale a search hovers, with plain gradients it blows up as its scale falls, with natural ones it "
    "settles",
    f"f at the end, at most that of the start, {START_VALUE:g}: natural below {SETTLED:g}; fixed as run between "
    f"{HOVERS_BETWEEN[0]:g} and {HOVERS_BETWEEN[1]:g}, where the author's ends, as written above {SETTLED:g}; plain "
    "less fixed above 0. And the logarithm of the plain gradient by the mean, its mean over the last twenty steps less "
    "that of the first, above 0",
)


def run(options: ReplicationOptions) -> Numbers:
    records_by_column = {
        AS_RUN: {gradient: as_run.searches_of(options, gradient) for gradient in searches.GRADIENTS},
        AS_WRITTEN: {gradient: searches.searches_of(options, gradient) for gradient in searches.GRADIENTS},
    }
    numbers_by_column = {column: _column(records) for column, records in records_by_column.items()}
    written = records_by_column[AS_WRITTEN]
    numbers_by_column[AS_WRITTEN] |= {
        "rates_of": {gradient: record["rates"] for gradient, record in written.items()},
        "narrow": final_values(searches.searches_of(options, "fixed", NARROW_SCALE)),
    }
    seeds = {AS_RUN: as_run.seeds(options), AS_WRITTEN: searches.seeds(options)}
    return {
        "settings": as_run.settings_by_column(options),
        "seeds": seeds[AS_RUN],
        "columns": numbers_by_column,
        "verdicts": [
            SETTLES.decide(_evidence(numbers, column), seeds[column], column, SETTING_OF_COLUMN[column])
            for column, numbers in numbers_by_column.items()
        ],
    }


SETTING_OF_COLUMN = {
    AS_RUN: "60 points, N = 200, utilities; all three from (0, 0) and σ = 1",
    AS_WRITTEN: "400 steps, N = 50, values as they are; all three from (0, 0) and σ = 1, each at its best rates",
}


def _column(records: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **chart_numbers(records["natural"]),
        "all_ends": {gradient: final_values(record) for gradient, record in records.items()},
        "plain_growth": log_gradient_growth(records["plain"]),
    }


def _evidence(numbers: Mapping[str, Any], column: str) -> dict[str, Evidence]:
    ends = {gradient: [min(end, START_VALUE) for end in each] for gradient, each in numbers["all_ends"].items()}
    low, high = HOVERS_BETWEEN if column == AS_RUN else (SETTLED, math.inf)
    return {
        "f, natural": Evidence(ends["natural"], below=SETTLED),
        "f, fixed": Evidence(ends["fixed"], above=low, below=high),
        "f, plain less fixed": paired(ends["plain"], ends["fixed"], above=0.0),
        "growth of plain gradients, logarithm": Evidence(numbers["plain_growth"], above=0.0),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    for column, numbers in columns(result).items():
        middle, _, highest = median_and_range(numbers["ends"])
        caption = f"At the end {middle} in the median, {highest} at most."
        change_texts = [
            f"{name} goes from {values[0]:.2g} to {values[1]:.2g}" for name, values in first_and_last(numbers).items()
        ]
        elements += [
            path_chart(numbers, column),
            value_chart(numbers, column, caption),
            scale_chart(numbers, column, f"{', and '.join(change_texts)}."),
            _ends_table(numbers, column),
            as_run.beside_the_author("natural", numbers) if column == AS_RUN else choice_table(numbers),
        ]
    return elements


def _ends_table(numbers: Mapping[str, Any], column: str) -> ResultTable:
    ends = dict(numbers["all_ends"])
    if "narrow" in numbers:
        ends[f"fixed at σ = {NARROW_SCALE:g}"] = numbers["narrow"]
    return ResultTable(
        f"f at the end of all three searches, {column}",
        ("search", "median", "lowest", "highest"),
        [[name, *median_and_range(each)] for name, each in ends.items()],
        caption="∞: it was not finite at the end.",
    )


def first_and_last(numbers: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """σ and the norm of ∂U/∂mean at the first step, and in the median of the last twenty."""
    return {
        name: (numbers[key][0], median(numbers[key][-20:])) for name, key in (("σ", "scale"), ("‖∂U/∂μ‖", "gradient"))
    }


ARTEFACT = Artefact(
    name="variational-optimisation/himmelblau-natural",
    order=8,
    group="functions",
    title="Himmelblau's function, searched with natural gradients",
    requirements=("VO-20", "VO-21", "VO-22", "VO-23"),
    run=run,
    claims=(SETTLES,),
    reference={
        "document": "a minimum is found, σ falls to zero and the search converges; no numbers are printed",
        "note": f"in its author's script, {as_run.WORST_COUNT}; by log σ² it takes d = 2 times the natural gradient",
        "f at the 60th iteration, his seed": {"fixed": 18.27, "plain": 98.5, "natural": 0.002},
    },
    left_open=(
        "what follows, of the column as written alone",
        "start, σ at the start and N: as with the fixed scale; one σ for both coordinates, whose Fisher information "
        "is d/2σ⁴ by σ²",
        "the rate η, and whether mean and variance share it: chosen as for plain gradients, from the same 25 pairs",
        "how far the grid of rates goes: the chosen rate of the mean, 3e-2, is its highest; at 0.1 trials broke",
        "where plain gradients are to have grown: the gradient shortens with f on the way to a minimum, although σ "
        "falls; it grows in the last steps alone, when the variance has been driven below zero and is taken as 1e-12",
        "how wide the fixed scale is: it decides what the comparison says, for at σ = 0.1 it comes as low as natural "
        "gradients do",
        "inside the expectation the document prints f(μ + σ²σε): f(μ + σε) is taken, as in its own estimate",
    ),
    durations=("some seconds", "two minutes"),
    show=show,
)
