"""The temperature that halving shares of the KL come to, weight by weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, mean, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.kl_split import trainings
from doxa_replicate.weight_uncertainty.kl_split.resistance import BATCH, COPIES, GROUPS
from doxa_replicate.weight_uncertainty.kl_split.trainings import PLAIN_HALVING

LEAST_PULL = 0.1  # of the mean over groups


def run(options: ReplicationOptions) -> Numbers:
    records = trainings.split_records(options)
    return {
        "settings": trainings.common_settings(options) | {"groups": GROUPS, "copies": COPIES, "rows a slope": BATCH},
        "seeds": trainings.seeds(options),
        "temperature": {
            name: [summary(values) for values in zip(*(r["temperature"] for r in rows), strict=True)]
            for name, rows in records.items()
        },
        "temperature_of_all": {
            name: summary([r["temperature_of_all"] for r in rows]) for name, rows in records.items()
        },
        "share_of_kl_pull": {
            name: [mean(values) for values in zip(*(r["share_of_kl_pull"] for r in rows), strict=True)]
            for name, rows in records.items()
        },
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    names = (PLAIN_HALVING, *(name for name in numbers["temperature"] if name.startswith("even")))
    tenths = [k + 0.5 for k in range(GROUPS)]
    lines = []
    for name in names:
        temperatures = _pulled_temperatures(numbers, name)
        lines.append(
            ChartLine(
                name,
                tenths,
                [None if each is None else each["mean"] for each in temperatures],
                [None if each is None else each["se"] for each in temperatures],
            )
        )
    ends = numbers["temperature"][PLAIN_HALVING]
    caption = (
        f"Halving shares: {ends[0]['mean']:.3f} where weights are most in doubt, {ends[-1]['mean']:.3f} where least."
    )
    rows = []
    for name, of_all in numbers["temperature_of_all"].items():
        temperatures = _pulled_temperatures(numbers, name)
        shown = (of_all, temperatures[0], temperatures[GROUPS // 2], temperatures[-1])
        rows.append([name, *("–" if each is None else format_with_error(each, 3) for each in shown)])
    headers = ("shares", "all weights", "least certain tenth", "sixth tenth", "most certain tenth")
    return [
        Chart(
            "The temperature at which scales would rest",
            caption,
            "tenths of the weights, by signal-to-noise",
            "temperature",
            lines,
            log_y=all(value > 0 for line in lines for value in line.y if value is not None),
        ),
        ResultTable(
            "Temperatures at the end of training",
            headers,
            rows,
            caption="± standard error over seeds; – where scales are the prior's, and no KL pulls.",
        ),
    ]


def _pulled_temperatures(numbers: Mapping[str, Any], name: str) -> list[Any]:
    """The temperature of each group of weights; None where the KL hardly pulls, so that there is no ratio to take."""
    pairs = zip(numbers["temperature"][name], numbers["share_of_kl_pull"][name], strict=True)
    return [each if share > LEAST_PULL / GROUPS else None for each, share in pairs]


ARTEFACT = Artefact(
    name="weight-uncertainty/equivalent-temperature",
    order=29,
    group="kl-split",
    title="At which temperature each weight's scale would rest",
    requirements=("WU-09",),
    run=run,
    reference={
        "note": "a study of Doxa's own. Where a free energy of temperature T is lowest, the slope of the NLL by ρ is T "
        "times that of the KL, the other way round: T is one for the true free energy, in every group of weights"
    },
    left_open=("slopes with local noise, summed over the training rows and over tenths of the weights",),
    departures={"quick": ("16 units, 3 epochs, one seed, 2,000 rows",)},
    durations=("some seconds", "ten minutes on two cores, its nets shared with scale-growth"),
    show=show,
)
