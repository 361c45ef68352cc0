"""One digit is scarce: what plain nets, dropout and beliefs make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

import doxa
from doxa.engine.contracts import Learner
from doxa.judge import ece, error, nll
from doxa.predict.belief import Belief
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.further.contest import (
    DRAWS,
    Arena,
    Entrant,
    Scores,
    belief_learner,
    differences,
    enter,
    kl_settings,
    test_scores,
)
from doxa_replicate.weight_uncertainty.further.rows import FewDigits, few_digits
from doxa_replicate.weight_uncertainty.further.tables import difference_table, score_table, tried_table

PER_CLASS, CHOOSE_PER_CLASS, SCARCE_SHARE = 500, 200, 0.05  # of the scarce digit 25 rows, and ten to choose by
EPOCHS, UNITS = 15, 100
DROPOUT_RATES = (0.02, 0.05, 0.1, 0.3)
KL_WEIGHTS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
REFERENCE = "plain net"
OVERALL = {"error": ("error, %", 2), "nll": ("NLL", 3), "ece": ("ECE, %", 2)}
SCARCE = {
    "scarce_error": ("error, %", 1),
    "scarce_nll": ("NLL", 2),
    "scarce_ece": ("ECE, %", 1),
    "sure_and_wrong": ("wrong and 90 % sure, %", 1),
}


def entrants() -> list[Entrant]:
    dropouts: dict[str, Learner] = {f"rate {rate:g}": doxa.learners.dropout(rate) for rate in DROPOUT_RATES}
    return [
        Entrant(REFERENCE, {"as it is": doxa.learners.point()}),
        Entrant("dropout", dropouts),
        Entrant("belief", kl_settings(belief_learner, KL_WEIGHTS)),
    ]


def run(options: ReplicationOptions) -> Numbers:
    seeds = options.seed_list(2, 10)
    per_class, choose = int(options.by_size(100, PER_CLASS)), int(options.by_size(20, CHOOSE_PER_CLASS))
    arena = Arena(
        "further-imbalanced",
        few_digits(options, seeds, per_class, choose, SCARCE_SHARE),
        seeds,
        units=int(options.by_size(16, UNITS)),
        epochs=int(options.by_size(2, EPOCHS)),
        facts={"rows a class": per_class, "rows a class to choose by": choose, "share of the scarce": SCARCE_SHARE},
    )
    entries = {entrant.title: enter(options, arena, entrant, judge) for entrant in entrants()}
    return {
        "settings": arena.settings(),
        "seeds": seeds,
        "entries": entries,
        "differences": differences(entries, REFERENCE),
    }


def judge(belief: Belief, digits: FewDigits, place: int) -> Scores:
    """Scores of all test rows, which are as common as in MNIST, and of the scarce digit's."""
    x, y = digits.test
    scarce_rows = y == digits.splits[place].scarce
    p, labels = belief.predict(x[scarce_rows], DRAWS).mean, y[scarce_rows]
    confidence, likeliest = p.max(1)
    return test_scores(belief, digits, place) | {
        "scarce_error": 100 * float(error(p, labels)),
        "scarce_nll": float(nll(p, labels)),
        "scarce_ece": 100 * float(ece(p, labels)),
        "sure_and_wrong": 100 * float(torch.logical_and(confidence > 0.9, likeliest != labels).double().mean()),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    return [
        score_table("The scarce digit", numbers["entries"], SCARCE),
        difference_table(f"the {REFERENCE}, the scarce digit", numbers["differences"], SCARCE),
        score_table("All digits", numbers["entries"], OVERALL),
        difference_table(f"the {REFERENCE}, all digits", numbers["differences"], OVERALL),
        tried_table(numbers["entries"]),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/imbalanced-digits",
    order=68,
    title="A digit of which there are 25 rows among 4,525: error, NLL and calibration, on it and on all",
    requirements=("WU-68",),
    run=run,
    reference={"document": "larger, sparser and imbalanced data are named as future work; nothing of them was run"},
    left_open=(
        "all of it: 500 rows a class and 5 % of one, another digit for each of ten seeds, 784-100-100-10, 15 epochs",
        "validation rows are as imbalanced as those that are learned from; test rows are all of MNIST's",
    ),
    durations=("a few seconds", "four minutes on one core"),
    show=show,
    group="further",
)
