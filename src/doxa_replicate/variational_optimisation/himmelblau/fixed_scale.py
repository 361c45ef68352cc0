"""Himmelblau's function with a scale that stays: a basin is found, and no rest in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.show import Shown, Table
from doxa_replicate.variational_optimisation.himmelblau import searches
from doxa_replicate.variational_optimisation.himmelblau.charts import (
    choice_table,
    drawn,
    path_chart,
    summary,
    value_chart,
)
from doxa_replicate.variational_optimisation.himmelblau.searches import ends

SCALES = (0.1, 0.3, 1.0, 2.0)


def run(ask: Ask) -> Numbers:
    of = searches.found(ask, "fixed")
    return {
        "settings": searches.settings(ask),
        "seeds": searches.seeds(ask),
        **drawn(of),
        "by_scale": {f"{scale:g}": _of_scale(ask, scale) for scale in SCALES},
    }


def _of_scale(ask: Ask, scale: float) -> dict[str, Any]:
    of = searches.found(ask, "fixed", scale)
    return {"rate": of["rates"]["mean"], "ends": ends(of)}


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [[scale, f"{of['rate']:g}", *summary(of["ends"])] for scale, of in numbers["by_scale"].items()]
    says = f"It falls, and then hovers: {summary(numbers['ends'])[0]} in the median at the end."
    return [
        path_chart(numbers),
        value_chart(numbers, says),
        Table(
            "f at the end with other scales, all fixed, each at its best rate",
            ("σ", "rate", "median", "lowest", "highest"),
            rows,
            says="How low it hovers is a matter of σ.",
        ),
        choice_table(numbers),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/himmelblau-fixed",
    place=2,
    group="functions",
    title="Himmelblau's function, searched with a fixed scale",
    rows=("VO-03", "VO-04"),
    run=run,
    reference={"document": "a minimum is found, but the search does not settle in it; no numbers are printed"},
    left_open=(
        "where it starts, how wide it looks and with how many draws: (0, 0), σ = 1 and N = 50, in all three searches",
        "the rate η: of 3e-4, 1e-3, 3e-3, 1e-2 and 3e-2 the one at which f stays lowest for twenty steps, in the "
        "median of four seeds that are not judged",
        "how many steps: 400",
    ),
    takes=("a second", "half a minute"),
    show=show,
)
