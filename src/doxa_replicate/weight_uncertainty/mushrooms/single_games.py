"""Figure 26: single games, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from doxa.bandits import paired
from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, GREEDY
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    DEPARTURES,
    LEFT_OPEN,
    finals,
    interval,
    played,
    seeds_of,
    settings_of,
)

NARROWER = "BBB, σ₁ = 0.75"


def run(ask: Ask) -> Numbers:
    found = {name: own for kind in ("thompson", "greedy") for name, own in played(ask, kind).reported.items()}
    shown = (BBB, NARROWER, GREEDY)
    games = {name: [[float(f"{v:.5g}") for v in game["regret"]] for game in found[name]] for name in shown}
    against = {name: asdict(paired(finals(found[name]), finals(found[GREEDY]))) for name in (BBB, NARROWER)}
    return {
        "settings": settings_of(ask),
        "seeds": seeds_of(ask),
        "steps": found[BBB][0]["steps"],
        "games": games,
        "final": {name: finals(found[name]) for name in shown},
        "differences": against,
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    steps, seeds = numbers["steps"], found["seeds"]
    charts = []
    for name, difference in numbers["differences"].items():
        lines = [
            Line(who, steps, curve, faint=i > 0, like=who)
            for who in (name, GREEDY)
            for i, curve in enumerate(numbers["games"][who])
        ]
        says = f"{name} less greedy at the end, over {len(seeds)} seeds: {interval(difference)}."
        charts.append(Chart(f"{name} and greedy, game by game", says, "step", "regret", lines))
    rows = [[name, *(f"{v:,.0f}" for v in own)] for name, own in numbers["final"].items()]
    return [*charts, Table("Final regret of every game", ("agent", *(f"seed {s}" for s in seeds)), rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-26",
    place=33,
    title="Mushrooms: single games, in which either agent may win",
    rows=("WU-65",),
    run=run,
    reference={
        "document": "two games, with σ₁ = 0.75 and with σ₁ = 1, in which the greedy agent wins",
        "note": "the document prints no values, and no spread",
    },
    left_open=LEFT_OPEN,
    departures=DEPARTURES,
    takes=("some seconds", "fifteen minutes on a GPU, its games shared with figure 23"),
    show=show,
    group="bandits",
)
