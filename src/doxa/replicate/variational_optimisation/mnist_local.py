"""The experiment that was left undone: local reparameterisation in variational optimisation, on MNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import doxa
from doxa import search
from doxa.replicate.contract import Artefact, Ask, Numbers
from doxa.replicate.over_seeds import mean, summary, with_error
from doxa.replicate.show import Chart, Line, Shown, Table
from doxa.replicate.variational_optimisation.pictures import pictures
from doxa.replicate.variational_optimisation.trials import Length, Trial, chosen_rate, dense, trained

HIDDEN, SCALE = (100, 100), 0.05
NET = partial(dense, HIDDEN)


def trials(ask: Ask) -> dict[str, Trial]:
    def made(estimator: Any) -> Any:
        return search.learner(estimator, size=int(ask.of(20, 100)), scale=SCALE)

    return {
        "local": Trial("MNIST, local", made(search.local()), NET, (1e-3, 3e-3)),
        "weight space": Trial("MNIST, weight space", made(search.weight_space()), NET, (3e-3, 1e-2)),
        "back-propagation": Trial("MNIST, back-propagation", doxa.learners.point(), NET, (1e-3, 3e-3)),
    }


def run(ask: Ask) -> Numbers:
    long, short = (Length(*ask.of((n, 64, 5), (of, 128, 250))) for n, of in ((20, 10_000), (10, 2_500)))
    rows, seeds = pictures(ask, "MNIST"), ask.these(1, 3)
    found: dict[str, Any] = {}
    for name, trial in trials(ask).items():
        part = f"mnist-{name.replace(' ', '-')}"
        rate = chosen_rate(ask, part, trial, rows.learn, rows.choose, short)
        own = [trained(ask, part, trial, rate["best"], seed, rows.train, rows.test, long) for seed in seeds]
        found[name] = {
            "rate": rate,
            **{key: summary([one[key] for one in own]) for key in ("accuracy", "nll", "seconds")},
            "each": [one["accuracy"] for one in own],
            "curve": [[mean([one["curve"][k][j] for one in own]) for j in (0, 1)] for k in range(len(own[0]["curve"]))],
        }
    return {
        "settings": {"net": [784, *HIDDEN, 10], "scale": SCALE, "length": vars(long), "rates": "cosine, down to 0"},
        "seeds": seeds,
        "trials": found,
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
    group="nets",
    title="MNIST by local perturbations: the experiment that was left undone",
    rows=("VO-31",),
    run=run,
    reference={"document": "nothing: local reparameterisation is derived, and its trial left to others"},
    left_open=(
        "net, population, scale, batch: 784-100-100-10, N = 100, σ = 0.05, 128 rows, 10,000 generations of Adam",
        "the learning rate of each: of two, by rows held out after a quarter of the generations, with another seed",
    ),
    departures={"quick": ("3,000 rows, 20 generations of 20 perturbations",)},
    takes=("some seconds", "two hours"),
    show=show,
)
