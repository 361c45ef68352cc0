"""Scales that grow with rate and epochs, whatever KL and data: what halving shares of the KL do under Adam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import doxa
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, mean, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.kl_split import trainings
from doxa_replicate.weight_uncertainty.kl_split.theory import drift, scale_after
from doxa_replicate.weight_uncertainty.kl_split.trainings import RATES, SETTINGS


def run(options: ReplicationOptions) -> Numbers:
    records, settings = trainings.split_records(options), trainings.common_settings(options)
    minibatches = settings["minibatches"]
    rho_start = mean(settings["rho"])
    return {
        "settings": settings | {"learned": {name: vars(setting) for name, setting in SETTINGS.items()}},
        "seeds": trainings.seeds(options),
        "growth": doxa.kl_weights.geometric().growth(minibatches),
        "drift": drift(minibatches, settings["epochs"]),
        "rho": {name: _mean_by_epoch([r["rho"] for r in rows]) for name, rows in records.items()},
        "rho_idle": {name: _mean_by_epoch([r["rho_idle"] for r in rows]) for name, rows in records.items()},
        "predicted": {
            name: scale_after(rho_start, setting.rate, minibatches, settings["epochs"])
            for name, setting in SETTINGS.items()
            if setting.halving
        },
        "rows": {
            name: {key: summary([r[key] for r in rows]) for key in ("scale", "error", "nll", "ece")}
            for name, rows in records.items()
        },
    }


def _mean_by_epoch(curves: Sequence[Sequence[float]]) -> list[float]:
    return [mean(values) for values in zip(*curves, strict=True)]


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [_growth_chart(result), _no_temperature_chart(result), _score_table(result["numbers"])]


def _growth_chart(result: Mapping[str, Any]) -> Chart:
    """ρ of weights that no data move, at three rates, beside Adam that is fed with nothing but the KL's slopes."""
    numbers, start = result["numbers"], mean(result["settings"]["rho"])
    epochs = list(range(len(next(iter(numbers["rho"].values()))) + 1))
    lines = []
    for rate in RATES:
        name = f"rate {rate:g}"
        lines.append(ChartLine(name, epochs, [start, *numbers["rho_idle"][f"halving, {name}"]]))
        foretold = [start, *(start + rate * moved for moved in numbers["drift"])]
        lines.append(ChartLine(f"{name}, Adam under the KL alone", epochs, foretold, dashed=True, like=name))
    top = max(max(numbers["rho_idle"][f"halving, rate {rate:g}"]) for rate in RATES)
    return Chart(
        "Weights of pixels that are always black",
        f"Adam under the KL alone moves ρ by {numbers['growth']:.1f} learning rates an epoch, once its moments settle.",
        "epoch",
        "median ρ",
        lines,
        y_limits=(start - 0.2, top + 0.5),
    )


def _no_temperature_chart(result: Mapping[str, Any]) -> Chart:
    """The median ρ of all weights, by the weight of the KL, with halving and with even shares."""
    numbers, start = result["numbers"], mean(result["settings"]["rho"])
    named = {name: name for name in numbers["rho"] if "KL weight" in name}
    named[trainings.PLAIN_HALVING] = "halving, KL weight 1"
    epochs = list(range(len(next(iter(numbers["rho"].values()))) + 1))
    lines = [
        ChartLine(shown, epochs, [start, *numbers["rho"][name]], dashed=name.startswith("even"))
        for name, shown in sorted(named.items(), key=lambda item: item[1])
    ]
    ends = [numbers["rho"][name][-1] for name in named if name.startswith("halving")]
    return Chart(
        "All weights, by the weight of the KL",
        f"With halving shares a thousandfold KL weight moves the median ρ by {max(ends) - min(ends):.2f} at the end.",
        "epoch",
        "median ρ",
        lines,
    )


def _score_table(numbers: Mapping[str, Any]) -> ResultTable:
    rows = [
        [
            name,
            f"{numbers['predicted'][name]:.3f}" if name in numbers["predicted"] else "–",
            f"{row['scale']['mean']:.3f}",
            format_with_error(row["error"], 2),
            format_with_error(row["nll"], 4),
            format_with_error(row["ece"], 2),
        ]
        for name, row in numbers["rows"].items()
    ]
    headers = ("shares", "median scale, foretold", "median scale", "error %", "NLL", "ECE %")
    return ResultTable("What they come to, on test rows", headers, rows, caption="± standard error over seeds.")


ARTEFACT = Artefact(
    name="weight-uncertainty/scale-growth",
    order=28,
    group="kl-split",
    title="Scales that grow by the learning rate, whatever the KL weighs",
    requirements=("WU-09",),
    run=run,
    reference={
        "note": "a study of Doxa's own: the authors' code pays half of an epoch's KL with its first minibatch and half "
        "as much with each next one, as Blundell et al. (2015) propose; the document does not say so"
    },
    left_open=("a net of 100 units, 30 epochs and local noise, since scales grow alike in nets of any size",),
    departures={"quick": ("16 units, 3 epochs, one seed, 2,000 rows",)},
    durations=("some seconds", "ten minutes on two cores"),
    show=show,
)
