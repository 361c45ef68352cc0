"""Table 1: log predictive density with single Gaussians as priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, mean, standard_error, summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.priors.densities import lppd_table

DOCUMENT_LPPD = {"0": -120.34, "1": -16.21, "2": -9.69}
NARROWER_IS_BETTER = Claim(
    "C-WU-4",
    "The narrower a single Gaussian prior, the sooner it converges and the higher its lppd",
    "along −log σ = 0, 1, 2 epochs fall, and the lppd rises; epochs to within 5 % of the final free energy, and to "
    "95 % of the way there, are judged apart",
)


def run(options: ReplicationOptions) -> Numbers:
    records = trainings.belief_records(options, "gaussian")
    table = lppd_table(records)
    epochs = {
        measure: {prior: [r[measure] for r in rows] for prior, rows in records.items()}
        for measure in trainings.CONVERGED
    }
    mean_epochs = {measure: [mean(v) for v in values.values()] for measure, values in epochs.items()}
    mean_lppds = [values["lppd"] for values in table.values()]
    return {
        "settings": trainings.common_settings(options),
        "seeds": trainings.seeds(options),
        "lppd": table,
        "epochs": {measure: {prior: summary(v) for prior, v in values.items()} for measure, values in epochs.items()},
        "verdicts": [
            NARROWER_IS_BETTER.judge(
                values[0] > values[1] > values[2] and mean_lppds[0] < mean_lppds[1] < mean_lppds[2],
                {"epochs": values, "lppd": mean_lppds},
                {
                    "epochs": [standard_error(v) for v in epochs[measure].values()],
                    "lppd": [row["se"] for row in table.values()],
                },
                trainings.seeds(options),
                f"{trainings.CONVERGED[measure]}; lppd over [−0.5, 1.5]",
            )
            for measure, values in mean_epochs.items()
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    rows = [
        [
            prior,
            f"{DOCUMENT_LPPD[prior]:.2f}",
            format_with_error({"mean": row["lppd"], "se": row["se"]}, 2),
            f"{row['inside']:.2f}",
            f"{row['monte_carlo_error']:.2g}",
            *(f"{row[prior]['mean']:.0f}" for row in result["numbers"]["epochs"].values()),
        ]
        for prior, row in result["numbers"]["lppd"].items()
    ]
    headers = (
        "−log σ",
        "document",
        "here",
        "amid the data",
        "± of the draws",
        "epochs to within 5 % of F",
        "to 95 % of the way",
    )
    return [ResultTable("lppd, mean over points of [−0.5, 1.5], ± standard error over seeds", headers, rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/table-1",
    order=11,
    group="regression",
    title="Log predictive density, single Gaussian priors",
    requirements=("WU-36",),
    run=run,
    claims=(NARROWER_IS_BETTER,),
    reference={"lppd by −log σ": DOCUMENT_LPPD},
    left_open=(
        "when a free energy has converged: within 5 % of its end, which is near 0, and at 95 % of the way there from "
        "the first epoch; claims about it are judged by both. The former mostly comes just after the rate is halved, "
        "after a third or two thirds of the epochs, and so tells of that as much as of the prior",
        "over how many points the lppd is averaged, and whether it is: the mean over 1,000 on [−0.5, 1.5]",
        "the noise inside it: σ_ε = 0.1, as in training",
    ),
    durations=("some seconds", "a minute on a GPU"),
    show=show,
)
