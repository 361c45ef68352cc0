"""Figure 14: the belief that local reparameterisation learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary, with_error
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, drawn, spread_says
from doxa_replicate.weight_uncertainty.curve.trainings import PRIOR

WORSE = Claim(
    "C-WU-10",
    "Local reparameterisation ends at a lower lppd",
    "lppd with local noise below that with shared noise, the prior being the same, for both scales",
)
PRIORS = ("0", "1")


def run(ask: Ask) -> Numbers:
    shared, local = trainings.records(ask, "gaussian"), trainings.records(ask, "local")
    gaps = {p: [b["lppd"] - a["lppd"] for a, b in zip(shared[p], local[p], strict=True)] for p in PRIORS}
    own = f"{PRIOR}"
    return {
        "settings": trainings.settings(ask),
        "seeds": trainings.seeds(ask),
        "bands": {"local": drawn(local[own][0]), "shared": drawn(shared[own][0])},
        "rows": {
            f"{name}, −log σ = {p}": {
                key: summary([r[key] for r in rows[p]]) for key in ("lppd", "lppd_inside", "iqr_inside", "iqr_outside")
            }
            for p in PRIORS
            for name, rows in (("shared", shared), ("local", local))
        },
        "verdicts": [
            WORSE.judged(
                all(mean(v) < 0 for v in gaps.values()),
                {f"local − shared, −log σ = {p}": mean(v) for p, v in gaps.items()},
                max(error(v) or 0.0 for v in gaps.values()),
                trainings.seeds(ask),
                "pairs of the same seed; lppd over [−0.5, 1.5]",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [
        [
            name,
            with_error(own["lppd"], 2),
            f"{own['lppd_inside']['mean']:.2f}",
            f"{own['iqr_inside']['mean']:.3g}",
            f"{own['iqr_outside']['mean']:.3g}",
        ]
        for name, own in numbers["rows"].items()
    ]
    heads = ("noise, prior", "lppd", "amid the data", "middle half, amid", "middle half, away")
    return [
        *(band_chart(f"{name} noise", spread_says(own), own) for name, own in numbers["bands"].items()),
        Table("Noise while learning, mean over seeds", heads, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-14",
    place=14,
    group="regression",
    title="What a belief learned by local reparameterisation expects of the curve",
    rows=("WU-39",),
    run=run,
    claims=(WORSE,),
    reference={
        "lppd": {"local, −log σ = 1": -26.03, "shared, −log σ = 1": -16.21},
        "note": "the document holds −26.03 against −3.21, which is another prior's: like for like it is −16.21",
    },
    takes=("some seconds", "a minute on a GPU"),
    show=show,
)
