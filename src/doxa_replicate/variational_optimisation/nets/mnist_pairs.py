"""MNIST by perturbations of the weights, in mirrored pairs and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from doxa import search
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary, with_error
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.nets.pictures import pictures
from doxa_replicate.variational_optimisation.nets.trials import Length, Trial, chosen_rate, dense, mean_curve, trained

HIDDEN, SCALE, ENOUGH = (100,), 0.05, 90.0
LEARNS = Claim(
    "C-VO-7",
    "Search with mirrored pairs learns MNIST",
    f"784-100-10, test rows: at least {ENOUGH:g} % right, and more than independent draws come "
    "to with as many evaluations",
)
NAMES = {"pairs": True, "independent": False}


def run(ask: Ask) -> Numbers:
    length = Length(*ask.of((20, 64, 5), (3000, 128, 100)))
    rows, seeds = pictures(ask, "MNIST"), ask.these(1, 3)
    found: dict[str, Any] = {}
    for name, antithetic in NAMES.items():
        learner = search.learner(search.weight_space(antithetic), size=int(ask.of(20, 100)), scale=SCALE)
        trial = Trial(f"MNIST, {name}", learner, partial(dense, HIDDEN), (1e-3, 3e-3, 1e-2))
        rate = chosen_rate(ask, f"mnist-{name}", trial, rows.learn, rows.choose, length)
        own = [trained(ask, f"mnist-{name}", trial, rate["best"], s, rows.train, rows.test, length) for s in seeds]
        found[name] = {
            "rate": rate,
            **{key: summary([one[key] for one in own]) for key in ("accuracy", "nll", "learned_accuracy")},
            "curve": mean_curve(own, range(5)),
            "each": [one["accuracy"] for one in own],
        }
    gain = [a - b for a, b in zip(found["pairs"]["each"], found["independent"]["each"], strict=True)]
    reached = found["pairs"]["accuracy"]["mean"]
    return {
        "settings": {"net": [784, *HIDDEN, 10], "scale": SCALE, "length": vars(length), "population": ask.of(20, 100)},
        "seeds": seeds,
        "kinds": found,
        "verdicts": [
            LEARNS.judged(
                reached >= ENOUGH and mean(gain) > 0,
                {name: of["accuracy"]["mean"] for name, of in found.items()} | {"gain": mean(gain)},
                error(gain),
                seeds,
                "accuracy in per cent of the net in the middle, test rows; the error is that of the gain",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    kinds = found["numbers"]["kinds"]

    def lines(of: int, learned: int) -> list[Line]:
        return [
            line
            for name, own in kinds.items()
            for line in (
                Line(f"{name}, test rows", [p[0] for p in own["curve"]], [p[of] for p in own["curve"]]),
                Line(f"{name}, learned", [p[0] for p in own["curve"]], [p[learned] for p in own["curve"]], dashed=True),
            )
        ]

    pairs, single = (kinds[name]["accuracy"]["mean"] for name in NAMES)
    rows = [
        [name, f"{own['rate']['best']:g}", with_error(own["accuracy"], 2), with_error(own["nll"], 3)]
        for name, own in kinds.items()
    ]
    return [
        Chart(
            "Accuracy",
            f"In the end {pairs:.2f} % with pairs, {single:.2f} % without.",
            "generation",
            "accuracy, %",
            lines(1, 3),
        ),
        Chart("NLL", "The mean over seeds.", "generation", "NLL, nats", lines(2, 4)),
        Table("Test rows", ("draws", "rate", "accuracy %", "NLL"), rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/mnist-pairs",
    place=12,
    group="nets",
    title="MNIST with and without mirrored pairs",
    rows=("VO-25",),
    run=run,
    claims=(LEARNS,),
    reference={"document": "accuracy and NLL of training and validation rows, as curves without numbers"},
    left_open=(
        "net, population, scale, batch, optimiser: 784-100-10, N = 100, σ = 0.05, 128 rows, Adam and centred ranks",
        "the learning rate: of three, for both, by rows held out after as many generations, with another seed; after a "
        "third of them a rate three times as high looked as good, and ended lower",
        "training rows on the curves: 10,000 of those that were learned from; test rows stand where the document has "
        "validation rows, since those chose the rate",
    ),
    departures={"quick": ("3,000 rows, 20 generations of 20 perturbations",)},
    takes=("some seconds", "under an hour"),
    show=show,
)
