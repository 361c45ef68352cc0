"""Himmelblau's function with plain gradients by mean and variance: as the scale falls, steps grow without bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.variational_optimisation.himmelblau import as_run, searches
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
    SearchRates,
    gradient_growth,
    growth_before_smallest,
)

FLOORS = (1e-2, 1e-4, 1e-6)


def run(options: ReplicationOptions) -> Numbers:
    return {
        "settings": as_run.settings_by_column(options),
        "seeds": as_run.seeds(options),
        "columns": {
            AS_RUN: _column(as_run.searches_of(options, "plain")),
            AS_WRITTEN: _column(searches.searches_of(options, "plain")) | _written_numbers(options),
        },
    }


def _column(searches_record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **chart_numbers(searches_record),
        "growth": gradient_growth(searches_record),
        "before": growth_before_smallest(searches_record),
    }


def _written_numbers(options: ReplicationOptions) -> dict[str, Any]:
    searches_record = searches.searches_of(options, "plain")
    rates = SearchRates(**searches_record["rates"])
    return {
        "run_for": searches.run_size(options).steps,
        "lasted": [len(record["f"]) - 1 for record in searches_record["seeds"]],
        "reached": [searches.lowest_level(record) for record in searches_record["seeds"]],
        "with_floor": {f"{floor:g}": searches.ends_with_floor(options, floor, rates) for floor in FLOORS},
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    for column, numbers in columns(result).items():
        growth_caption = (
            f"At the smallest σ the gradient is {median(numbers['growth']):.2g} times as long as at the start, in the "
            f"median over seeds; in the twenty steps before, {median(numbers['before']):.2g} times."
        )
        if column == AS_RUN:
            middle, lowest, highest = median_and_range(numbers["ends"])
            caption = f"It ends at {middle} in the median, between {lowest} and {highest}: it swings, and rises again."
            elements += [
                path_chart(numbers, column),
                value_chart(numbers, column, caption),
                scale_chart(numbers, column, growth_caption),
                as_run.beside_the_author("plain", numbers),
            ]
        else:
            elements += [
                path_chart(numbers, column),
                value_chart(numbers, column, _written_caption(numbers), (1e-4, 1e12)),
                scale_chart(numbers, column, growth_caption, (1e-7, 1e12)),
                _floors_table(numbers),
                choice_table(numbers),
            ]
    return elements


def _written_caption(numbers: Mapping[str, Any]) -> str:
    lasted = numbers["lasted"]
    broken_count = sum(step_count < numbers["run_for"] for step_count in lasted)
    when = f", in the median after {median(lasted):.0f} steps" if broken_count else ""
    return (
        f"It stays as low as {median(numbers['reached']):.2g} for twenty steps; {broken_count} of {len(lasted)} "
        f"searches then left for infinity{when}."
    )


def _floors_table(numbers: Mapping[str, Any]) -> ResultTable:
    rows = [
        [format_value(float(floor) ** 0.5), *median_and_range(ends)] for floor, ends in numbers["with_floor"].items()
    ]
    return ResultTable(
        "f at the end where σ is kept from falling below a floor, as written, at the same rates",
        ("σ at least", "median", "lowest", "highest"),
        rows,
        caption="What a floor does is no part of the document.",
    )


ARTEFACT = Artefact(
    name="variational-optimisation/himmelblau-plain",
    order=7,
    group="functions",
    title="Himmelblau's function, searched with plain gradients by mean and variance",
    requirements=("VO-09", "VO-15", "VO-18"),
    run=run,
    reference={
        "document": "a minimum is found, and then the variance is driven towards zero, which makes gradients larger "
        "and more uncertain; no numbers are printed",
        "note": f"in its author's script, {as_run.WORST_COUNT}; the parameter is log σ²",
        "f at the 60th iteration, his seed": 98.5,
    },
    left_open=(
        "what follows, of the column as written alone",
        "start, σ at the start and N: as with the fixed scale; one σ for both coordinates",
        "the rate η, and whether mean and variance share it: of 25 pairs the one at which f stays lowest for twenty "
        "steps, in the median of four seeds that are not judged",
        "how far the grid of rates goes: the chosen rate of the variance, 1e-4, is its lowest; at 3e-5 σ is still 0.7 "
        "after 400 steps, and f stays above 1",
        "what happens where a step takes the variance below zero: it is taken as 1e-12",
        "which slope the variance has: (1/2Nσ²) Σ f (‖ε‖² − d), the derivative that the document's score does not have "
        "where it is first printed",
    ),
    durations=("a second", "a minute"),
    show=show,
)
