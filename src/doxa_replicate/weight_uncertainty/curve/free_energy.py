"""Figure 9: free energy against epochs for three scales of the likelihood's noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.show import Shown
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import curves
from doxa_replicate.weight_uncertainty.curve.likelihood_noise import sweep
from doxa_replicate.weight_uncertainty.curve.measures import average
from doxa_replicate.weight_uncertainty.curve.trainings import NOISE

BEST = Claim(
    "C-WU-3",
    "A likelihood noise of 0.1 is the best of 0.01, 0.1 and 1",
    "lowest free energy at the end, the Gaussian's constant included, and highest lppd",
)


def run(ask: Ask) -> Numbers:
    found = sweep(ask)
    final = {scale: [r["final"]["free_energy"] for r in rows] for scale, rows in found.items()}
    density = {scale: [r["lppd"] for r in rows] for scale, rows in found.items()}
    lowest = min(final, key=lambda s: mean(final[s]))
    highest = max(density, key=lambda s: mean(density[s]))
    amid = {scale: mean([r["lppd_inside"] for r in rows]) for scale, rows in found.items()}
    chosen = f"{NOISE:g}"
    return {
        "settings": trainings.settings(ask) | {"likelihood": list(found)},
        "seeds": trainings.seeds(ask),
        "free_energy": {scale: average([r["free_energy"] for r in rows]) for scale, rows in found.items()},
        "final": {s: summary(v) for s, v in final.items()},
        "lppd": {s: summary(v) for s, v in density.items()},
        "lppd_inside": amid,
        "verdicts": [
            BEST.judged(
                lowest == highest == chosen,
                {
                    "lowest free energy": lowest,
                    "highest lppd": highest,
                    "highest amid the data": max(amid, key=lambda s: amid[s]),
                },
                None,
                trainings.seeds(ask),
                "lppd over [−0.5, 1.5]",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    said = ", ".join(f"{of['mean']:,.0f} with {scale}" for scale, of in numbers["final"].items())
    named = {f"σ_ε = {scale}": points for scale, points in numbers["free_energy"].items()}
    return [curves("Free energy", f"At the end {said}.", "free energy, nats", named, log_y=True)]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-9",
    place=7,
    group="regression",
    title="Free energy while learning, for three scales of the likelihood's noise",
    rows=("WU-32",),
    run=run,
    claims=(BEST,),
    reference={"document": "σ_ε = 0.1 ends lowest after 1,500 epochs; no numbers are printed"},
    left_open=("whether the Gaussian's constant is part of what is drawn: here it is, else scales cannot be compared",),
    takes=("some seconds", "a minute on a GPU"),
    show=show,
)
