"""A convolutional net with BatchNorm, found by perturbations of its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

import doxa
from doxa import search
from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import with_error
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.nets.trials import Contest, Length, Trial

LEVELS = (90, 95, 97, 98)  # per cent: when each is passed


def net() -> nn.Module:
    """Two convolutions and two dense layers, each but the last with BatchNorm: 22,000 weights."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 10, 5),
        nn.MaxPool2d(2),
        nn.BatchNorm2d(10),
        nn.ReLU(),
        nn.Conv2d(10, 20, 5),
        nn.MaxPool2d(2),
        nn.BatchNorm2d(20),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(320, 50),
        nn.BatchNorm1d(50),
        nn.ReLU(),
        nn.Linear(50, 10),
    )


def trials(ask: Ask) -> dict[str, Trial]:
    size = int(ask.of(10, 100))
    return {
        "weight space": Trial(
            "CNN, weight space",
            search.learner(search.weight_space(), size=size, scale=0.05),
            net,
            (3e-3, 1e-2, 3e-2),
        ),
        "back-propagation": Trial("CNN, back-propagation", doxa.learners.point(), net, (1e-3, 3e-3, 1e-2)),
    }


def contest(ask: Ask) -> Contest:
    long, short = (Length(*ask.of((4, 100, 2), (generations, 1000, 25))) for generations in (5000, 1000))
    return Contest("MNIST", "cnn", trials(ask), long, short)


def run(ask: Ask) -> Numbers:
    seeds, own = ask.these(1, 3), contest(ask)
    found = {name: own.found(ask, name, seeds) for name in own.trials}
    for of in found.values():
        curves = of.pop("curves")
        of["passed"] = {str(level): [passed(curve, level) for curve in curves] for level in LEVELS}
    weights = sum(p.numel() for p in net().parameters())
    return {
        "settings": {"weights": weights, "length": vars(own.length), "population": ask.of(10, 100), "scale": 0.05},
        "seeds": seeds,
        "trials": found,
    }


def passed(curve: Sequence[Sequence[float]], level: float) -> int | None:
    """The first generation that was looked at with so much right; None where there is none."""
    return next((int(point[0]) for point in curve if point[1] >= level), None)


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    trials = numbers["trials"]
    lines = [Line(name, [p[0] for p in of["curve"]], [p[1] for p in of["curve"]]) for name, of in trials.items()]
    own = trials["weight space"]
    said = ", ".join("never" if at is None else f"{at:,}" for at in own["passed"]["95"])
    rows = [
        [name, f"{of['rate']['best']:g}", with_error(of["accuracy"], 2), with_error(of["nll"], 4)]
        for name, of in trials.items()
    ]
    levels = [
        [name, *(", ".join("–" if at is None else str(at) for at in of["passed"][str(level)]) for level in LEVELS)]
        for name, of in trials.items()
    ]
    return [
        Chart(
            "Test accuracy while learning",
            f"95 % is passed at generation {said}, seed by seed.",
            "generation",
            "accuracy, %",
            lines,
            y_limits=(80, 100),
        ),
        Table("Test rows", ("how", "rate", "accuracy %", "NLL"), rows),
        Table(
            "The generation at which a level is passed, seed by seed",
            ("how", *(f"{level} %" for level in LEVELS)),
            levels,
        ),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/convolutional",
    place=16,
    group="nets",
    title="A convolutional net with BatchNorm, found by perturbations of its weights",
    rows=("VO-10",),
    run=run,
    reference={
        "weights": 22_000,
        "95 % at generation": "300 to 375",
        "97 % at generation": "1,050 to 1,450",
        "best, after 5,000 generations": 98.35,
        "back-propagation": 99.1,
        "note": "figures of the document's author, of other work",
    },
    left_open=(
        "the net: two convolutions of 10 and 20 maps, dense layers of 50 and 10, BatchNorm before each ReLU",
        "scale and step: σ = 0.05, N = 100 in pairs, centred ranks, Adam down to 0 by a cosine; its rate of three, by "
        "rows held out after 1,000 generations, with another seed",
        "how often it is looked at: every 25 generations",
    ),
    departures={"quick": ("3,000 rows, four generations of ten perturbations, 100 rows each",)},
    takes=("some seconds", "eighteen minutes on a GPU"),
    show=show,
)
