"""Figure 8: how much noise the likelihood allows for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.compared_records import records_by_noise
from doxa_replicate.weight_uncertainty.curve.trainings import DEFAULT_PRIOR


def run(options: ReplicationOptions) -> Numbers:
    records_by_scale = records_by_noise(options)
    return {
        "settings": trainings.common_settings(options)
        | {"likelihood": list(records_by_scale), "prior": f"N(0, e⁻²ˣ), x = {DEFAULT_PRIOR}"},
        "seeds": trainings.seeds(options),
        "bands": {scale: band_fields(rows[0]) for scale, rows in records_by_scale.items()},
        "coverage": {
            scale: {key: summary([r["coverage"][key] for r in rows]) for key in ("functions", "with_noise")}
            for scale, rows in records_by_scale.items()
        },
        "lppd": {
            scale: {key: summary([r[key] for r in rows]) for key in ("lppd", "lppd_inside")}
            for scale, rows in records_by_scale.items()
        },
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [
        [
            scale,
            f"{100 * numbers['coverage'][scale]['functions']['mean']:.1f}",
            f"{100 * numbers['coverage'][scale]['with_noise']['mean']:.1f}",
            f"{numbers['lppd'][scale]['lppd_inside']['mean']:.2f}",
            f"{numbers['lppd'][scale]['lppd']['mean']:.2f}",
        ]
        for scale in numbers["bands"]
    ]
    headers = ("σ_ε", "in the 90 % of functions, %", "with noise, %", "lppd amid the data", "lppd everywhere")
    return [
        *(band_chart(f"σ_ε = {scale}", spread_caption(band), band) for scale, band in numbers["bands"].items()),
        ResultTable("Fresh points amid the data, and log predictive density", headers, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-8",
    order=6,
    group="regression",
    title="The curve believed with three scales of the likelihood's noise",
    requirements=("WU-28", "WU-31"),
    run=run,
    reference={"document": "0.01 is overconfident, 1.0 fits poorly, 0.1 is taken; no numbers are printed"},
    left_open=("the prior of this sweep: N(0, e⁻²)",),
    durations=("some seconds", "a minute on a GPU"),
    show=show,
)
