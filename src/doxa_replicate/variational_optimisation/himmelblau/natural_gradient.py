"""Himmelblau's function with natural gradients: the scale falls, and the search comes to rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.variational_optimisation.himmelblau import searches
from doxa_replicate.variational_optimisation.himmelblau.charts import (
    chart_numbers,
    choice_table,
    format_value,
    median_and_range,
    path_chart,
    scale_chart,
    value_chart,
)
from doxa_replicate.variational_optimisation.himmelblau.searches import (
    final_values,
    gradient_growth,
    growth_before_smallest,
)

MAX_NATURAL_END, LEAST_RATIO = 0.05, 10.0
NARROW_SCALE = 0.1  # a smaller scale that stays, to compare with
SETTLES = Claim(
    "C-VO-3",
    "With a fixed scale a search hovers, with plain gradients it blows up as its scale falls, with natural ones it "
    "settles",
    f"median over seeds of f at the end: natural below {MAX_NATURAL_END:g}, fixed at least {LEAST_RATIO:g} times "
    "natural; with plain "
    "gradients the norm by the mean is larger than at the start, in the median: where σ is first smallest, and in the "
    "twenty steps that lead there, judged apart",
)


def run(options: ReplicationOptions) -> Numbers:
    records_by_gradient = {gradient: searches.searches_of(options, gradient) for gradient in searches.GRADIENTS}
    ends_by_gradient = {gradient: final_values(record) for gradient, record in records_by_gradient.items()}
    narrow_end = median(final_values(searches.searches_of(options, "fixed", NARROW_SCALE)))
    median_ends = {gradient: median(values) for gradient, values in ends_by_gradient.items()}
    growth_by_place = {
        "where σ is first smallest, which is where a step took the variance below zero": median(
            gradient_growth(records_by_gradient["plain"])
        ),
        "in the twenty steps before, of which each has a variance of its own": median(
            growth_before_smallest(records_by_gradient["plain"])
        ),
    }
    return {
        "settings": searches.common_settings(options),
        "seeds": searches.seeds(options),
        **chart_numbers(records_by_gradient["natural"]),
        "all_ends": ends_by_gradient,
        "rates_of": {gradient: record["rates"] for gradient, record in records_by_gradient.items()},
        "verdicts": [
            SETTLES.judge(
                median_ends["natural"] < MAX_NATURAL_END
                and median_ends["fixed"] >= LEAST_RATIO * median_ends["natural"]
                and growth_factor > 1,
                {f"f, {gradient}": format_value(value) for gradient, value in median_ends.items()}
                | {
                    "growth of plain gradients": growth_factor,
                    f"f, fixed at σ = {NARROW_SCALE:g}": format_value(narrow_end),
                },
                None,
                searches.seeds(options),
                f"growth {place_text}. All three from (0, 0) and σ = 1, each at its best rates; ∞: not finite at the "
                "end. "
                "A scale fixed at 0.1 stands there to compare, and is not judged",
            )
            for place_text, growth_factor in growth_by_place.items()
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = []
    for gradient, column in numbers["all_ends"].items():
        rates = numbers["rates_of"][gradient]
        rows.append([gradient, f"{rates['mean']:g}", f"{rates['scale']:g}", *median_and_range(column)])
    middle, _, highest = median_and_range(numbers["ends"])
    caption = f"At the end {middle} in the median, {highest} at most."
    change_texts = [
        f"{name} goes from {values[0]:.2g} to {values[1]:.2g}" for name, values in first_and_last(numbers).items()
    ]
    return [
        path_chart(numbers),
        value_chart(numbers, caption),
        scale_chart(numbers, f"{', and '.join(change_texts)}."),
        ResultTable(
            "f at the end of all three searches",
            ("search", "rate of the mean", "of the variance", "median", "lowest", "highest"),
            rows,
            caption="∞: it was not finite at the end.",
        ),
        choice_table(numbers),
    ]


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
    durations=("some seconds", "two minutes"),
    show=show,
)
