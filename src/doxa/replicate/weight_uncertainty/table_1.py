"""Table 1: log predictive density with single Gaussians as priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa.replicate.contract import Artefact, Ask, Claim, Numbers
from doxa.replicate.over_seeds import error, mean, summary, with_error
from doxa.replicate.show import Shown, Table
from doxa.replicate.weight_uncertainty import regression
from doxa.replicate.weight_uncertainty.regression import Records

DOCUMENT = {"0": -120.34, "1": -16.21, "2": -9.69}
NARROWER = Claim(
    "C-WU-4",
    "The narrower a single Gaussian prior, the sooner it converges and the higher its lppd",
    "along −log σ = 0, 1, 2 the epochs to within 5 % of the final free energy fall, and the lppd rises",
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
    found = regression.records(ask, "gaussian")
    table = densities(found)
    epochs = {prior: [r["epochs_to_5_percent"] for r in rows] for prior, rows in found.items()}
    sooner, higher = [mean(v) for v in epochs.values()], [own["lppd"] for own in table.values()]
    return {
        "settings": regression.settings(ask),
        "seeds": regression.seeds(ask),
        "lppd": table,
        "epochs": {prior: summary(v) for prior, v in epochs.items()},
        "verdicts": [
            NARROWER.judged(
                sooner[0] > sooner[1] > sooner[2] and higher[0] < higher[1] < higher[2],
                {"epochs": sooner, "lppd": higher},
                max(own["se"] or 0.0 for own in table.values()),
                regression.seeds(ask),
                "lppd over [−0.5, 1.5]",
            )
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
            f"{found['numbers']['epochs'][prior]['mean']:.0f}",
        ]
        for prior, own in found["numbers"]["lppd"].items()
    ]
    heads = ("−log σ", "document", "here", "amid the data", "± of the draws", "epochs to within 5 % of F")
    return [Table("lppd, mean over points of [−0.5, 1.5], ± standard error over seeds", heads, rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/table-1",
    group="regression",
    title="Log predictive density, single Gaussian priors",
    rows=("WU-36",),
    run=run,
    claims=(NARROWER,),
    reference={"lppd by −log σ": DOCUMENT},
    left_open=(
        "when a free energy has converged: within 5 % of its end; figure 12 has 95 % of the way there too",
        "over how many points the lppd is averaged, and whether it is: the mean over 1,000 on [−0.5, 1.5]",
        "the noise inside it: σ_ε = 0.1, as in training",
    ),
    takes=("some seconds", "a minute on a GPU"),
    show=show,
)
