"""Figure 24: how many mushrooms are eaten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa import bandits
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, CHOSEN_NAMES, GREEDY, game_size
from doxa_replicate.weight_uncertainty.mushrooms.game_records import RATE_WINDOWS, mean_curve
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    DEPARTURES,
    LEFT_OPEN,
    play_agents,
    reported_seeds,
    result_settings,
)

MUSHROOM_GROUPS = {"all": "of all mushrooms", "best": "of the edible ones", "not_best": "of the poisonous ones"}


def run(options: ReplicationOptions) -> Numbers:
    games_by_agent = {
        name: games for kind in ("thompson", "greedy") for name, games in play_agents(options, kind).reported.items()
    }
    shown = (BBB, GREEDY, CHOSEN_NAMES["thompson"], CHOSEN_NAMES["greedy"])
    agents = {
        name: {group: mean_curve(games_by_agent[name], f"eats_{group}") for group in MUSHROOM_GROUPS} for name in shown
    }
    window = max(1, game_size(options).steps // RATE_WINDOWS)
    bandit = bandits.mushrooms()
    edible = float((bandit.best == bandit.actions.index("eat")).double().mean())
    return {
        "settings": {**result_settings(options), "window": window},
        "seeds": reported_seeds(options),
        "steps": [window * (i + 1) for i in range(len(agents[BBB]["all"]["mean"]))],
        "edible": edible,
        "agents": agents,
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    steps, agents = numbers["steps"], numbers["agents"]
    first = {name: rates["all"]["mean"][0] for name, rates in agents.items()}
    caption = (
        f"In the first {steps[0]:,} steps BBB ate {first[BBB]:.0%} of all mushrooms and the greedy agent "
        f"{first[GREEDY]:.0%}; {numbers['edible']:.0%} are edible."
    )
    return [
        Chart(
            f"Share eaten {group_name}",
            caption,
            "step",
            "share eaten",
            [ChartLine(name, steps, rates[group]["mean"], rates[group]["se"]) for name, rates in agents.items()],
            y_limits=(0, 1),
        )
        for group, group_name in MUSHROOM_GROUPS.items()
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-24",
    order=31,
    title="Mushrooms: how many are eaten, and which",
    requirements=("WU-63",),
    run=run,
    reference={
        "document": "both agents eat at similar rates; in Blundell et al. (2015) the greedy one ate nothing at first",
        "note": "the document prints no values; means of three runs",
    },
    left_open=LEFT_OPEN,
    departures=DEPARTURES,
    durations=("some seconds", "fifteen minutes on a GPU, its games shared with figure 23"),
    show=show,
    group="bandits",
)
