"""Early stopping and weight decay, the usual remedies against overfitting, beside a belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import doxa
from doxa.engine.contracts import Learner
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement
from doxa_replicate.weight_uncertainty.further.contest import (
    Arena,
    Entrant,
    belief_learner,
    differences,
    enter,
    kl_settings,
    test_scores,
)
from doxa_replicate.weight_uncertainty.further.rows import few_digits
from doxa_replicate.weight_uncertainty.further.tables import difference_table, score_table, tried_table

PER_CLASS = 100  # rows to learn from, and as many to choose by
EPOCHS, PATIENCE, UNITS = 40, 10, 100
PRIOR_SCALES = (3.0, 1.0, 0.5, 0.3, 0.1)  # a decay of 1/(N s²) of each weight a step
REFERENCE = "belief"
HEADERS = {"error": ("error, %", 2), "nll": ("NLL", 3), "ece": ("ECE, %", 2)}


def entrants() -> list[Entrant]:
    plain: dict[str, Learner] = {"as it is": doxa.learners.point()}
    decays: dict[str, Learner] = {
        f"N(0, {scale:g}²)": doxa.learners.point(doxa.priors.gaussian(scale)) for scale in PRIOR_SCALES
    }
    return [
        Entrant("plain net", plain),
        Entrant("stopped early", plain, patience=PATIENCE),
        Entrant("weight decay", decays),
        Entrant("weight decay, stopped early", decays, patience=PATIENCE),
        Entrant(REFERENCE, kl_settings(belief_learner)),
        Entrant("belief, stopped early", kl_settings(belief_learner), patience=PATIENCE),
    ]


def run(options: ReplicationOptions) -> Numbers:
    seeds = options.seed_list(2, 5)
    per_class = int(options.by_size(10, PER_CLASS))
    arena = Arena(
        "further-remedies",
        few_digits(options, seeds, per_class, per_class),
        seeds,
        units=int(options.by_size(16, UNITS)),
        epochs=int(options.by_size(3, EPOCHS)),
        facts={"rows a class": per_class, "rows a class to choose by": per_class},
    )
    entries = {entrant.title: enter(options, arena, entrant, test_scores) for entrant in entrants()}
    return {
        "settings": arena.settings() | {"patience": PATIENCE, "prior_scales": PRIOR_SCALES},
        "seeds": seeds,
        "entries": entries,
        "differences": differences(entries, REFERENCE),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    return [
        score_table("Remedies", numbers["entries"], HEADERS),
        difference_table(f"the {REFERENCE}", numbers["differences"], HEADERS),
        tried_table(numbers["entries"]),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/remedies",
    order=70,
    title="Early stopping and weight decay beside a belief, on a thousand digits",
    requirements=("WU-70",),
    run=run,
    reference={"document": "named as the usual remedies against overfitting; nothing of them was run"},
    left_open=(
        "all of it: 784-100-100-10 on 100 rows a class, drawn anew for each seed, 40 epochs of Adam along a cosine",
        "decay is the slope of a Gaussian prior, not decoupled from Adam",
    ),
    durations=("a few seconds", "four minutes on one core"),
    show=show,
    group="further",
)
