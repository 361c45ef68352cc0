"""Himmelblau's function with a scale that stays: a basin is found, and no rest in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.variational_optimisation.himmelblau import as_run, searches
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
    by_scale = {f"{scale:g}": _ends_at_scale(options, scale) for scale in SCALES}
    return {
        "settings": as_run.settings_by_column(options),
        "seeds": as_run.seeds(options),
        "columns": {
            AS_RUN: chart_numbers(as_run.searches_of(options, "fixed")),
            AS_WRITTEN: chart_numbers(searches.searches_of(options, "fixed")) | {"by_scale": by_scale},
        },
    }


def _ends_at_scale(options: ReplicationOptions, scale: float) -> dict[str, Any]:
    searches_record = searches.searches_of(options, "fixed", scale)
    return {"rate": searches_record["rates"]["mean"], "ends": final_values(searches_record)}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    for column, numbers in columns(result).items():
        caption = f"It falls, and then hovers: {median_and_range(numbers['ends'])[0]} in the median at the end."
        elements += [path_chart(numbers, column), value_chart(numbers, column, caption)]
        if column == AS_RUN:
            elements.append(as_run.beside_the_author("fixed", numbers))
        else:
            elements += [_other_scales(numbers), choice_table(numbers)]
    return elements


def _other_scales(numbers: Mapping[str, Any]) -> ResultTable:
    rows = [
        [scale, f"{entry['rate']:g}", *median_and_range(entry["ends"])] for scale, entry in numbers["by_scale"].items()
    ]
    return ResultTable(
        "f at the end with other scales as written, all fixed, each at its best rate",
        ("σ", "rate", "median", "lowest", "highest"),
        rows,
        caption="How low it hovers is a matter of σ.",
    )


ARTEFACT = Artefact(
    name="variational-optimisation/himmelblau-fixed",
    order=2,
    group="functions",
    title="Himmelblau's function, searched with a fixed scale",
    requirements=("VO-03", "VO-04"),
    run=run,
    reference={
        "document": "a minimum is found, but the search does not settle in it; no numbers are printed",
        "note": f"in its author's script, {as_run.WORST_COUNT}",
        "f at the 60th iteration, his seed": 18.27,
    },
    left_open=(
        "what follows, of the column as written alone",
        "where it starts, how wide it looks and with how many draws: (0, 0), σ = 1 and N = 50, in all three searches",
        "the rate η: of 3e-4, 1e-3, 3e-3, 1e-2 and 3e-2 the one at which f stays lowest for twenty steps, in the "
        "median of four seeds that are not judged",
        "how many steps: 400",
    ),
    durations=("a second", "a minute"),
    show=show,
)
