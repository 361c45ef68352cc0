"""Fashion-MNIST by values alone: local perturbations beside others and back-propagation, with steps and 0/1 loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import doxa
from doxa import search
from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import with_error
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.nets.trials import Contest, Length, Step, Trial, dense

HIDDEN, SCALE = (100, 100), 0.05
LOWER, HIGHER = (3e-4, 1e-3, 3e-3, 1e-2), (1e-3, 3e-3, 1e-2, 3e-2)  # rates, until the best has one on either side
RELU, STEPS = partial(dense, HIDDEN), partial(dense, HIDDEN, Step)


def trials(ask: Ask) -> dict[str, Trial]:
    def made(**more: Any) -> Any:
        return search.learner(size=int(ask.of(20, 100)), scale=SCALE, **more)

    zero_one = made(minimise=search.zero_one)
    return {
        "local": Trial("local", made(), RELU),
        "local, step units": Trial("local, step units", made(), STEPS),
        "local, 0/1 loss": Trial("local, 0/1 loss", zero_one, RELU, LOWER),
        "local, step units, 0/1 loss": Trial("local, step units, 0/1 loss", zero_one, STEPS, LOWER),
        "weight space": Trial("weight space", made(estimator=search.weight_space()), RELU, HIGHER),
        "low rank": Trial("low rank", made(estimator=search.low_rank()), RELU, HIGHER),
        "back-propagation": Trial("back-propagation", doxa.learners.point(), RELU, HIGHER),
        "back-propagation, step units": Trial("back-propagation, step units", doxa.learners.point(), STEPS, (1e-3,)),
    }


def run(ask: Ask) -> Numbers:
    length = Length(*ask.of((10, 64, 5), (400, 128, 50)))
    seeds, own = ask.these(1, 3), Contest("Fashion-MNIST", "fashion", trials(ask), length, length)
    return {
        "settings": {"net": [784, *HIDDEN, 10], "scale": SCALE, "length": vars(length), "rates": "cosine, down to 0"},
        "seeds": seeds,
        "trials": {name: own.found(ask, name, seeds) for name in own.trials},
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    trials = found["numbers"]["trials"]
    rows = [
        [
            name,
            f"{of['rate']['best']:g}",
            with_error(of["accuracy"], 2),
            with_error(of["nll"], 3),
            f"{of['seconds']['mean']:.0f}",
        ]
        for name, of in trials.items()
    ]
    lines = [Line(name, [p[0] for p in of["curve"]], [p[1] for p in of["curve"]]) for name, of in trials.items()]
    behind = trials["back-propagation"]["accuracy"]["mean"] - trials["local"]["accuracy"]["mean"]
    says = f"Local perturbations end {behind:.2f} points behind back-propagation."
    heads = ("how", "rate", "accuracy %", "NLL", "seconds")
    return [
        Chart("Test accuracy while learning", says, "generation", "accuracy, %", lines),
        Table("The net in the middle, on test rows", heads, rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/fashion-mnist",
    place=15,
    group="nets",
    title="Fashion-MNIST without gradients, and without anything that has one",
    rows=("VO-42", "VO-01", "VO-10"),
    run=run,
    reference={"document": "nothing: that neither net nor objective needs a slope is said, and not shown"},
    left_open=(
        "net, population, scale, batch: 784-100-100-10, N = 100, σ = 0.05, 128 rows",
        "the learning rate of each: of three or four, by 10,000 rows held out of the training set, with another seed",
    ),
    departures={"quick": ("3,000 rows, 10 generations of 20 perturbations",)},
    takes=("some seconds", "ten minutes"),
    show=show,
)
