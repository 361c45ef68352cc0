"""Figure 14: the belief that local reparameterisation learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, mean, standard_error, summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import band_chart, band_fields, spread_caption
from doxa_replicate.weight_uncertainty.curve.trainings import DEFAULT_PRIOR
from doxa_replicate.weight_uncertainty.local_reparameterisation.priors import PRIORS

LOWER_LPPD = Claim(
    "C-WU-10",
    "Local reparameterisation ends at a lower lppd",
    "lppd with local noise below that with shared noise, the prior being the same, for both scales",
)


def run(options: ReplicationOptions) -> Numbers:
    shared, local = trainings.belief_records(options, "gaussian"), trainings.belief_records(options, "local")
    gaps = {p: [b["lppd"] - a["lppd"] for a, b in zip(shared[p], local[p], strict=True)] for p in PRIORS}
    prior = f"{DEFAULT_PRIOR}"
    return {
        "settings": trainings.common_settings(options),
        "seeds": trainings.seeds(options),
        "bands": {"local": band_fields(local[prior][0]), "shared": band_fields(shared[prior][0])},
        "rows": {
            f"{name}, −log σ = {p}": {
                key: summary([r[key] for r in rows[p]]) for key in ("lppd", "lppd_inside", "iqr_inside", "iqr_outside")
            }
            for p in PRIORS
            for name, rows in (("shared", shared), ("local", local))
        },
        "verdicts": [
            LOWER_LPPD.judge(
                all(mean(v) < 0 for v in gaps.values()),
                {f"local − shared, −log σ = {p}": mean(v) for p, v in gaps.items()},
                max(standard_error(v) or 0.0 for v in gaps.values()),
                trainings.seeds(options),
                "pairs of the same seed; lppd over [−0.5, 1.5]",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [
        [
            name,
            format_with_error(entry["lppd"], 2),
            f"{entry['lppd_inside']['mean']:.2f}",
            f"{entry['iqr_inside']['mean']:.3g}",
            f"{entry['iqr_outside']['mean']:.3g}",
        ]
        for name, entry in numbers["rows"].items()
    ]
    headers = ("noise, prior", "lppd", "amid the data", "middle half, amid", "middle half, away")
    return [
        *(band_chart(f"{name} noise", spread_caption(entry), entry) for name, entry in numbers["bands"].items()),
        ResultTable("Noise while learning, mean over seeds", headers, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-14",
    order=14,
    group="regression",
    title="What a belief learned by local reparameterisation expects of the curve",
    requirements=("WU-39",),
    run=run,
    claims=(LOWER_LPPD,),
    reference={
        "lppd": {"local, −log σ = 1": -26.03, "shared, −log σ = 1": -16.21},
        "note": "the document holds −26.03 against −3.21, which is another prior's: like for like it is −16.21",
    },
    durations=("some seconds", "a minute on a GPU"),
    show=show,
)
