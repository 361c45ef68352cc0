"""Other families of beliefs, and what they do to confidence, calibration, accuracy and robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import doxa
from doxa.engine.contracts import Learner
from doxa.judge import brier, error
from doxa.judge.attacks import fgsm
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

PER_CLASS = 100  # rows to learn from, and as many to choose by
EPOCHS, UNITS, MEMBERS = 40, 100, 5
ATTACKED_ROWS, RADIUS = 1000, 0.1
DROPOUT_RATES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
TEMPERATURES = (1.0, 0.3, 0.1, 0.03, 0.01)
CHAIN_RATE, AVERAGING_RATE = 0.1, 3e-3
REFERENCE = "independent Gaussians"
HEADERS = {
    "error": ("error, %", 2),
    "nll": ("NLL", 3),
    "ece": ("ECE, %", 2),
    "brier": ("Brier", 3),
    "confidence": ("mean confidence, %", 1),
    "attacked": (f"right under FGSM of {RADIUS:g}, %", 1),
}


def entrants() -> list[Entrant]:
    """All but the mixture, which takes the KL weight that its members choose."""
    plain = doxa.learners.point()
    dropouts: dict[str, Learner] = {f"rate {rate:g}": doxa.learners.dropout(rate) for rate in DROPOUT_RATES}
    chains: dict[str, Learner] = {
        f"temperature {t:g}": doxa.learners.langevin(doxa.priors.gaussian(1.0), temperature=t) for t in TEMPERATURES
    }
    return [
        Entrant("point", {"as it is": plain}),
        Entrant(REFERENCE, kl_settings(belief_learner)),
        Entrant("dropout", dropouts),
        Entrant(f"ensemble of {MEMBERS} points", {"as it is": doxa.learners.ensemble(plain, MEMBERS)}),
        Entrant("average of weights", {"as it is": doxa.learners.swa(plain)}, lr=AVERAGING_RATE),
        Entrant("samples of a chain", chains, lr=CHAIN_RATE),
    ]


def mixture(kl_setting: str) -> Entrant:
    learner = kl_settings(belief_learner)[kl_setting]
    return Entrant(f"mixture of {MEMBERS} of them", {kl_setting: doxa.learners.ensemble(learner, MEMBERS)})


def run(options: ReplicationOptions) -> Numbers:
    seeds = options.seed_list(2, 5)
    per_class = int(options.by_size(10, PER_CLASS))
    arena = Arena(
        "further-families",
        few_digits(options, seeds, per_class, per_class),
        seeds,
        units=int(options.by_size(16, UNITS)),
        epochs=int(options.by_size(3, EPOCHS)),
        facts={"rows a class": per_class, "rows a class to choose by": per_class, "radius": RADIUS},
    )
    entries = {entrant.title: enter(options, arena, entrant, judge) for entrant in entrants()}
    committee = mixture(entries[REFERENCE]["chosen"])
    entries[committee.title] = enter(options, arena, committee, judge)
    return {
        "settings": arena.settings()
        | {"members": MEMBERS, "rate of the chain": CHAIN_RATE, "rate of what is averaged": AVERAGING_RATE},
        "seeds": seeds,
        "entries": entries,
        "differences": differences(entries, REFERENCE),
    }


def judge(belief: Belief, digits: FewDigits, place: int) -> Scores:
    """Scores of all test rows, and how many of the first are still right under an attack by their own gradients."""
    x, y = digits.test
    p = belief.predict(x, DRAWS).mean
    rows = slice(0, ATTACKED_ROWS)
    attacked = fgsm(belief, x[rows], y[rows], RADIUS, DRAWS)
    return test_scores(belief, digits, place) | {
        "brier": float(brier(p, y)),
        "confidence": 100 * float(p.amax(1).double().mean()),
        "attacked": 100 * float(1 - error(belief.predict(attacked, DRAWS).mean, y[rows])),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    return [
        score_table("Families", numbers["entries"], HEADERS),
        difference_table(REFERENCE, numbers["differences"], HEADERS),
        tried_table(numbers["entries"]),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/families",
    order=69,
    title="Seven families on the same net and a thousand digits: confidence, calibration, accuracy, robustness",
    requirements=("WU-69",),
    run=run,
    reference={"document": "other variational families are named as future work; nothing of them was run"},
    left_open=(
        "all of it: 784-100-100-10 on 100 rows a class, drawn anew for each seed, 40 epochs along a cosine",
        "full-rank and low-rank Gaussians, flows and Laplace's method, which Doxa does not have",
    ),
    durations=("half a minute", "five minutes on one core"),
    show=show,
    group="further",
)
