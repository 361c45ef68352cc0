"""The experiment that was left undone: local reparameterisation in variational optimisation, on MNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import doxa
from doxa import search
from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import with_error
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.nets.trials import Contest, Length, Trial, dense

HIDDEN, SCALE = (100, 100), 0.05
NET = partial(dense, HIDDEN)


def trials(ask: Ask) -> dict[str, Trial]:
    def made(estimator: Any) -> Any:
        return search.learner(estimator, size=int(ask.of(20, 100)), scale=SCALE)

    return {
        "local": Trial("MNIST, local", made(search.local()), NET, (1e-3, 3e-3, 1e-2)),
        "weight space": Trial("MNIST, weight space", made(search.weight_space()), NET, (1e-3, 3e-3, 1e-2)),
        "back-propagation": Trial("MNIST, back-propagation", doxa.learners.point(), NET, (1e-3, 3e-3, 1e-2)),
    }


def contest(ask: Ask) -> Contest:
    long, short = ask.of((20, 64, 5), (10_000, 128, 250)), ask.of((10, 64, 5), (2_500, 128, 250))
    return Contest("MNIST", "mnist", trials(ask), Length(*long), Length(*short))


def run(ask: Ask) -> Numbers:
    seeds, own = ask.these(1, 3), contest(ask)
    return {
        "settings": {
            "net": [784, *HIDDEN, 10],
            "scale": SCALE,
            "length": vars(own.length),
            "rates": "cosine, down to 0",
        },
        "seeds": seeds,
        "trials": {name: own.found(ask, name, seeds) for name in own.trials},
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    trials = found["numbers"]["trials"]

    def line(name: str, of: Mapping[str, Any], by_time: bool) -> Line:
        last, took = of["curve"][-1][0], of["seconds"]["mean"]
        share = took / last if by_time else 1.0
        return Line(name, [p[0] * share for p in of["curve"]], [p[1] for p in of["curve"]])

    searched = {name: of for name, of in trials.items() if name != "back-propagation"}
    rows = [
        [
            name,
            f"{of['rate']['best']:g}",
            with_error(of["accuracy"], 2),
            with_error(of["nll"], 4),
            f"{of['seconds']['mean']:.0f}",
        ]
        for name, of in trials.items()
    ]
    ahead = trials["local"]["accuracy"]["mean"] - trials["weight space"]["accuracy"]["mean"]
    says = f"Local perturbations end {ahead:.2f} points ahead of those of the weights."
    return [
        Chart(
            "By generations",
            says,
            "generation",
            "test accuracy, %",
            [line(name, of, False) for name, of in trials.items()],
        ),
        Chart(
            "By time",
            "The same searches, against the seconds that they took.",
            "seconds",
            "test accuracy, %",
            [line(name, of, True) for name, of in searched.items()],
        ),
        Table("Test rows", ("how", "rate", "accuracy %", "NLL", "seconds"), rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/mnist-local",
    place=14,
    group="nets",
    title="MNIST by local perturbations: the experiment that was left undone",
    rows=("VO-31",),
    run=run,
    reference={"document": "nothing: local reparameterisation is derived, and its trial left to others"},
    left_open=(
        "net, population, scale, batch: 784-100-100-10, N = 100, σ = 0.05, 128 rows, 10,000 generations of Adam",
        "the learning rate of each: of three, by rows held out after a quarter of the generations, with another seed",
    ),
    departures={"quick": ("3,000 rows, 20 generations of 20 perturbations",)},
    takes=("some seconds", "six minutes on a GPU"),
    show=show,
)
