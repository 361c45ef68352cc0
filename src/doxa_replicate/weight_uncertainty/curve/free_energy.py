"""Figure 9: free energy against epochs for three scales of the likelihood's noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import curves_chart
from doxa_replicate.weight_uncertainty.curve.compared_records import records_by_noise
from doxa_replicate.weight_uncertainty.curve.measures import mean_curve
from doxa_replicate.weight_uncertainty.curve.trainings import NOISE

BEST_NOISE = Claim(
    "C-WU-3",
    "A likelihood noise of 0.1 is the best of 0.01, 0.1 and 1",
    "lowest free energy at the end, the Gaussian's constant included, and highest lppd",
)


def run(options: ReplicationOptions) -> Numbers:
    records_by_scale = records_by_noise(options)
    final_energies = {scale: [r["final"]["free_energy"] for r in rows] for scale, rows in records_by_scale.items()}
    lppds = {scale: [r["lppd"] for r in rows] for scale, rows in records_by_scale.items()}
    lowest = min(final_energies, key=lambda s: mean(final_energies[s]))
    highest = max(lppds, key=lambda s: mean(lppds[s]))
    lppd_inside = {scale: mean([r["lppd_inside"] for r in rows]) for scale, rows in records_by_scale.items()}
    chosen = f"{NOISE:g}"
    return {
        "settings": trainings.common_settings(options) | {"likelihood": list(records_by_scale)},
        "seeds": trainings.seeds(options),
        "free_energy": {
            scale: mean_curve([r["free_energy"] for r in rows]) for scale, rows in records_by_scale.items()
        },
        "final": {s: summary(v) for s, v in final_energies.items()},
        "lppd": {s: summary(v) for s, v in lppds.items()},
        "lppd_inside": lppd_inside,
        "verdicts": [
            BEST_NOISE.judge(
                lowest == highest == chosen,
                {
                    "lowest free energy": lowest,
                    "highest lppd": highest,
                    "highest amid the data": max(lppd_inside, key=lambda s: lppd_inside[s]),
                },
                None,
                trainings.seeds(options),
                "lppd over [−0.5, 1.5]",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    finals_text = ", ".join(f"{final['mean']:,.0f} with {scale}" for scale, final in numbers["final"].items())
    points_by_name = {f"σ_ε = {scale}": points for scale, points in numbers["free_energy"].items()}
    return [curves_chart("Free energy", f"At the end {finals_text}.", "free energy, nats", points_by_name, log_y=True)]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-9",
    order=7,
    group="regression",
    title="Free energy while learning, for three scales of the likelihood's noise",
    requirements=("WU-32",),
    run=run,
    claims=(BEST_NOISE,),
    reference={"document": "σ_ε = 0.1 ends lowest after 1,500 epochs; no numbers are printed"},
    left_open=("whether the Gaussian's constant is part of what is drawn: here it is, else scales cannot be compared",),
    durations=("some seconds", "a minute on a GPU"),
    show=show,
)
