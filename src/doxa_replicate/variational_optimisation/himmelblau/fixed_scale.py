"""Himmelblau's function with a scale that stays: a basin is found, and no rest in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.variational_optimisation.himmelblau import searches
from doxa_replicate.variational_optimisation.himmelblau.charts import (
    chart_numbers,
    choice_table,
    median_and_range,
    path_chart,
    value_chart,
)
from doxa_replicate.variational_optimisation.himmelblau.searches import final_values

SCALES = (0.1, 0.3, 1.0, 2.0)


def run(options: ReplicationOptions) -> Numbers:
    searches_record = searches.searches_of(options, "fixed")
    return {
        "settings": searches.common_settings(options),
        "seeds": searches.seeds(options),
        **chart_numbers(searches_record),
        "by_scale": {f"{scale:g}": _ends_at_scale(options, scale) for scale in SCALES},
    }


def _ends_at_scale(options: ReplicationOptions, scale: float) -> dict[str, Any]:
    searches_record = searches.searches_of(options, "fixed", scale)
    return {"rate": searches_record["rates"]["mean"], "ends": final_values(searches_record)}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [
        [scale, f"{entry['rate']:g}", *median_and_range(entry["ends"])] for scale, entry in numbers["by_scale"].items()
    ]
    caption = f"It falls, and then hovers: {median_and_range(numbers['ends'])[0]} in the median at the end."
    return [
        path_chart(numbers),
        value_chart(numbers, caption),
        ResultTable(
            "f at the end with other scales, all fixed, each at its best rate",
            ("σ", "rate", "median", "lowest", "highest"),
            rows,
            caption="How low it hovers is a matter of σ.",
        ),
        choice_table(numbers),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/himmelblau-fixed",
    order=2,
    group="functions",
    title="Himmelblau's function, searched with a fixed scale",
    requirements=("VO-03", "VO-04"),
    run=run,
    reference={"document": "a minimum is found, but the search does not settle in it; no numbers are printed"},
    left_open=(
        "where it starts, how wide it looks and with how many draws: (0, 0), σ = 1 and N = 50, in all three searches",
        "the rate η: of 3e-4, 1e-3, 3e-3, 1e-2 and 3e-2 the one at which f stays lowest for twenty steps, in the "
        "median of four seeds that are not judged",
        "how many steps: 400",
    ),
    durations=("a second", "half a minute"),
    show=show,
)
