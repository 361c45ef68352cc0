"""Local noise in classification: what it gains and costs beside shared noise and flipout, at equal epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from doxa.predict.belief import Belief
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import FAIL, PASS, Evidence
from doxa_replicate.weight_uncertainty.further.contest import (
    Arena,
    Entrant,
    Scores,
    belief_learner,
    differences,
    enter,
    kl_settings,
    test_scores,
)
from doxa_replicate.weight_uncertainty.further.gradients import NOISES, gradient_numbers, ratios
from doxa_replicate.weight_uncertainty.further.rows import FewDigits, few_digits
from doxa_replicate.weight_uncertainty.further.tables import difference_table, score_table, tried_table

PER_CLASS = 100  # rows to learn from, and as many to choose by
EPOCHS, UNITS = 40, 100
COPIES, ROUNDS = 16, 8  # of gradients of a belief held still: so many at once, so many times
REFERENCE = "shared"
HEADERS = {"error": ("error, %", 2), "nll": ("NLL", 3), "ece": ("ECE, %", 2), "train_nll": ("NLL, training", 3)}
QUANTITIES = {"means": "variance of the slopes of means", "rhos": "variance of the slopes of ρ", "time": "time"}
WORDS = {PASS: "less", FAIL: "more"}


def run(options: ReplicationOptions) -> Numbers:
    seeds = options.seed_list(2, 5)
    per_class = int(options.by_size(10, PER_CLASS))
    copies, rounds = (int(options.by_size(quick, full)) for quick, full in ((4, COPIES), (2, ROUNDS)))
    arena = Arena(
        "further-local-noise",
        few_digits(options, seeds, per_class, per_class),
        seeds,
        units=int(options.by_size(16, UNITS)),
        epochs=int(options.by_size(3, EPOCHS)),
        facts={
            "rows a class": per_class,
            "rows a class to choose by": per_class,
            "copies": copies,
            "rounds": rounds,
        },
    )
    judge = partial(_judge, copies, rounds)
    entries = {
        noise: enter(options, arena, Entrant(noise, kl_settings(partial(belief_learner, noise=noise))), judge)
        for noise in NOISES
    }
    return {
        "settings": arena.settings(),
        "seeds": seeds,
        "entries": entries,
        "differences": differences(entries, REFERENCE),
        "ratios": {
            f"{noise}, {what}": Evidence(ratios(entries[REFERENCE]["scores"], what, noise), below=1.0).as_dict()
            for what in QUANTITIES
            for noise in NOISES
            if noise != REFERENCE
        },
    }


def _judge(copies: int, rounds: int, belief: Belief, digits: FewDigits, place: int) -> Scores:
    x, y = digits.pool
    learn = [*digits.splits[place].learn]
    return {
        **test_scores(belief, digits, place),
        "train_nll": float(belief.record.history[-1]["nll"]),
        **gradient_numbers(belief, (x[learn], y[learn]), copies, rounds),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [
        [name.partition(", ")[0], QUANTITIES[name.partition(", ")[2]], _ratio(part)]
        for name, part in numbers["ratios"].items()
    ]
    caption = (
        "One step's gradients of the belief that shared noise learned, held still; mean over seeds and 95 % interval. "
        "Time is that of a step's gradients, nothing else."
    )
    return [
        score_table("By noise", numbers["entries"], HEADERS),
        difference_table("shared noise", numbers["differences"], HEADERS),
        ResultTable("Gradients, over those with shared noise", ("noise", "of", "ratio"), rows, 2, caption),
        tried_table(numbers["entries"]),
    ]


def _ratio(part: Mapping[str, Any]) -> str:
    if part["low"] is None:
        return f"{part['mean']:.3f}"
    verdict = WORDS.get(part["verdict"], "undecided")
    return f"{part['mean']:.3f} [{part['low']:.3f}, {part['high']:.3f}], {verdict}".replace("-", "−")


ARTEFACT = Artefact(
    name="weight-uncertainty/local-noise",
    order=67,
    title="Local noise in classification: skill, calibration, and the variance and time of its gradients",
    requirements=("WU-67",),
    run=run,
    reference={"document": "local reparameterisation in classification is named as future work; nothing of it was run"},
    left_open=("all of it: 784-100-100-10 on 100 rows a class, drawn anew for each seed, one draw a step, 40 epochs",),
    durations=("ten seconds", "four minutes on one core"),
    show=show,
    group="further",
)
