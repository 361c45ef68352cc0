"""Figure 8: how much noise the likelihood allows for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.compared import records_by_noise
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, SWEEP_PRIOR, seeds


def run(options: ReplicationOptions) -> Numbers:
    return {
        "settings": settings_by_column(options)
        | {"prior": {column: f"N(0, e⁻²ˣ), x = {prior}" for column, prior in SWEEP_PRIOR.items()}},
        "seeds": seeds(options),
        "columns": {column: _column(options, column) for column in COLUMNS},
    }


def _column(options: ReplicationOptions, column: str) -> dict[str, Any]:
    records_by_scale = records_by_noise(options, column)
    return {
        "bands": {scale: band_fields(rows[0]) for scale, rows in records_by_scale.items()},
        "coverage": {
            scale: {key: summary([r["coverage"][key] for r in rows]) for key in ("functions", "with_noise")}
            for scale, rows in records_by_scale.items()
        },
        "lppd": {
            scale: {
                key: summary([r["densities"][key] for r in rows])
                for key in ("lppd", "lppd_inside", "mean_log", "mean_log_inside")
            }
            for scale, rows in records_by_scale.items()
        },
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [element for column, numbers in columns(result).items() for element in _show_column(column, numbers)]


def _show_column(column: str, numbers: Mapping[str, Any]) -> list[PageElement]:
    rows = [
        [
            scale,
            f"{100 * numbers['coverage'][scale]['functions']['mean']:.1f}",
            f"{100 * numbers['coverage'][scale]['with_noise']['mean']:.1f}",
            *(f"{densities[key]['mean']:.2f}" for key in ("lppd_inside", "lppd")),
            f"{densities['mean_log']['mean']:.2f}" if "mean_log" in densities else "–",
        ]
        for scale, densities in numbers["lppd"].items()
    ]
    headers = (
        *("σ_ε", "in the 90 % of functions, %", "with noise, %", "lppd amid the data", "lppd everywhere"),
        "mean of logs everywhere",
    )
    return [
        *(
            band_chart(f"σ_ε = {scale}, {column}", spread_caption(band), band)
            for scale, band in numbers["bands"].items()
        ),
        ResultTable(f"Fresh points amid the data, and log predictive density, {column}", headers, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-8",
    order=6,
    group="regression",
    title="The curve believed with three scales of the likelihood's noise",
    requirements=("WU-28", "WU-31"),
    run=run,
    reference={"document": "0.01 is overconfident, 1.0 fits poorly, 0.1 is taken; no numbers are printed"},
    left_open=("the prior of this sweep: N(0, 1) as run; N(0, e⁻²) as written and chosen",),
    durations=("some seconds", "four minutes on a GPU"),
    show=show,
)
