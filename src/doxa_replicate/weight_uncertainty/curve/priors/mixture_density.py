"""Table 2: log predictive density with scale mixtures as priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.priors.densities import lppd_table
from doxa_replicate.weight_uncertainty.curve.trainings import NARROW_SCALES, WIDE_SCALES

DOCUMENT_LPPD = {
    "0, 6": -32.40,
    "0, 7": -412.87,
    "0, 8": -184.17,
    "1, 6": -3.21,
    "1, 7": -22.46,
    "1, 8": -21.29,
    "2, 6": -21.58,
    "2, 7": -16.77,
    "2, 8": -16.20,
}
BEST_MIXTURE = Claim(
    "C-WU-6",
    "Of nine mixtures the one with −log σ₁, σ₂ = 1, 6 has the highest lppd",
    "the largest entry of the table of means over seeds",
)


def run(options: ReplicationOptions) -> Numbers:
    table = lppd_table(trainings.belief_records(options, "mixture"))
    best = max(table, key=lambda prior: table[prior]["lppd"])
    return {
        "settings": trainings.common_settings(options),
        "seeds": trainings.seeds(options),
        "lppd": table,
        "verdicts": [
            BEST_MIXTURE.judge(
                best == "1, 6",
                {"best": best, "its lppd": table[best]["lppd"], "lppd of 1, 6": table["1, 6"]["lppd"]},
                table[best]["se"],
                trainings.seeds(options),
                "lppd over [−0.5, 1.5]",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    table = result["numbers"]["lppd"]
    best = max(table, key=lambda prior: table[prior]["lppd"])
    rows = []
    for wide in WIDE_SCALES:
        row = [f"{wide}"]
        for narrow in NARROW_SCALES:
            prior = f"{wide}, {narrow}"
            cell = table[prior]
            lppd_text = format_with_error({"mean": cell["lppd"], "se": cell["se"]}, 2)
            row.append(f"{'**' * (prior == best)}{lppd_text}{'**' * (prior == best)} ({DOCUMENT_LPPD[prior]:.2f})")
        rows.append(row)
    headers = ("−log σ₁", *(f"−log σ₂ = {narrow}" for narrow in NARROW_SCALES))
    return [ResultTable("lppd here, ± standard error over seeds (in the document)", headers, rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/table-2",
    order=13,
    group="regression",
    title="Log predictive density, scale mixture priors",
    requirements=("WU-38",),
    run=run,
    claims=(BEST_MIXTURE,),
    reference={
        "lppd": DOCUMENT_LPPD,
        "note": "the document calls −3.21 its lowest; it is the highest, and the best",
    },
    left_open=("as in table 1",),
    durations=("some seconds", "two minutes on a GPU"),
    show=show,
)
