"""Table 1: log predictive density with single Gaussians as priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary, with_error
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.trainings import Records

DOCUMENT = {"0": -120.34, "1": -16.21, "2": -9.69}
NARROWER = Claim(
    "C-WU-4",
    "The narrower a single Gaussian prior, the sooner it converges and the higher its lppd",
    "along −log σ = 0, 1, 2 epochs fall, and the lppd rises; epochs to within 5 % of the final free energy, and to "
    "95 % of the way there, are judged apart",
)


def densities(found: Records) -> dict[str, dict[str, Any]]:
    """lppd over seeds, with what its draws leave unsure."""
    return {
        prior: {
            "lppd": mean([r["lppd"] for r in rows]),
            "se": error([r["lppd"] for r in rows]),
            "inside": mean([r["lppd_inside"] for r in rows]),
            "monte_carlo_error": mean([r["lppd_error"] for r in rows]),
            "monte_carlo_bias": mean([r["lppd_bias"] for r in rows]),
            "each": [r["lppd"] for r in rows],
        }
        for prior, rows in found.items()
    }


def run(ask: Ask) -> Numbers:
    found = trainings.records(ask, "gaussian")
    table = densities(found)
    epochs = {
        measure: {prior: [r[measure] for r in rows] for prior, rows in found.items()} for measure in trainings.CONVERGED
    }
    sooner = {measure: [mean(v) for v in own.values()] for measure, own in epochs.items()}
    higher = [own["lppd"] for own in table.values()]
    return {
        "settings": trainings.settings(ask),
        "seeds": trainings.seeds(ask),
        "lppd": table,
        "epochs": {measure: {prior: summary(v) for prior, v in own.items()} for measure, own in epochs.items()},
        "verdicts": [
            NARROWER.judged(
                own[0] > own[1] > own[2] and higher[0] < higher[1] < higher[2],
                {"epochs": own, "lppd": higher},
                {
                    "epochs": [error(v) for v in epochs[measure].values()],
                    "lppd": [row["se"] for row in table.values()],
                },
                trainings.seeds(ask),
                f"{trainings.CONVERGED[measure]}; lppd over [−0.5, 1.5]",
            )
            for measure, own in sooner.items()
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    rows = [
        [
            prior,
            f"{DOCUMENT[prior]:.2f}",
            with_error({"mean": own["lppd"], "se": own["se"]}, 2),
            f"{own['inside']:.2f}",
            f"{own['monte_carlo_error']:.2g}",
            *(f"{own[prior]['mean']:.0f}" for own in found["numbers"]["epochs"].values()),
        ]
        for prior, own in found["numbers"]["lppd"].items()
    ]
    heads = (
        "−log σ",
        "document",
        "here",
        "amid the data",
        "± of the draws",
        "epochs to within 5 % of F",
        "to 95 % of the way",
    )
    return [Table("lppd, mean over points of [−0.5, 1.5], ± standard error over seeds", heads, rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/table-1",
    place=11,
    group="regression",
    title="Log predictive density, single Gaussian priors",
    rows=("WU-36",),
    run=run,
    claims=(NARROWER,),
    reference={"lppd by −log σ": DOCUMENT},
    left_open=(
        "when a free energy has converged: within 5 % of its end, which is near 0, and at 95 % of the way there from "
        "the first epoch; claims about it are judged by both. The former mostly comes just after the rate is halved, "
        "after a third or two thirds of the epochs, and so tells of that as much as of the prior",
        "over how many points the lppd is averaged, and whether it is: the mean over 1,000 on [−0.5, 1.5]",
        "the noise inside it: σ_ε = 0.1, as in training",
    ),
    takes=("some seconds", "a minute on a GPU"),
    show=show,
)
