"""Figure 24: how many mushrooms are eaten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa import bandits
from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.show import Chart, Line, Shown
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, CHOSEN, GREEDY, size_of
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    DEPARTURES,
    LEFT_OPEN,
    WINDOWS,
    curve_of,
    played,
    seeds_of,
    settings_of,
)

AMONG = {"all": "of all mushrooms", "best": "of the edible ones", "not_best": "of the poisonous ones"}


def run(ask: Ask) -> Numbers:
    found = {name: own for kind in ("thompson", "greedy") for name, own in played(ask, kind).reported.items()}
    shown = (BBB, GREEDY, CHOSEN["thompson"], CHOSEN["greedy"])
    agents = {name: {among: curve_of(found[name], f"eats_{among}") for among in AMONG} for name in shown}
    window = max(1, size_of(ask).steps // WINDOWS)
    bandit = bandits.mushrooms()
    edible = float((bandit.best == bandit.actions.index("eat")).double().mean())
    return {
        "settings": {**settings_of(ask), "window": window},
        "seeds": seeds_of(ask),
        "steps": [window * (i + 1) for i in range(len(agents[BBB]["all"]["mean"]))],
        "edible": edible,
        "agents": agents,
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    steps, agents = numbers["steps"], numbers["agents"]
    first = {name: own["all"]["mean"][0] for name, own in agents.items()}
    says = (
        f"In the first {steps[0]:,} steps BBB ate {first[BBB]:.0%} of all mushrooms and the greedy agent "
        f"{first[GREEDY]:.0%}; {numbers['edible']:.0%} are edible."
    )
    return [
        Chart(
            f"Share eaten {words}",
            says,
            "step",
            "share eaten",
            [Line(name, steps, own[among]["mean"], own[among]["se"]) for name, own in agents.items()],
            y_limits=(0, 1),
        )
        for among, words in AMONG.items()
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-24",
    place=31,
    title="Mushrooms: how many are eaten, and which",
    rows=("WU-63",),
    run=run,
    reference={
        "document": "both agents eat at similar rates; in Blundell et al. (2015) the greedy one ate nothing at first",
        "note": "the document prints no values; means of three runs",
    },
    left_open=LEFT_OPEN,
    departures=DEPARTURES,
    takes=("some seconds", "fifteen minutes on a GPU, its games shared with figure 23"),
    show=show,
    group="bandits",
)
