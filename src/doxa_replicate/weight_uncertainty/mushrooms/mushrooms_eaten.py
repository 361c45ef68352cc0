"""Figure 24: how many mushrooms are eaten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa import bandits
from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, GREEDY, game_size
from doxa_replicate.weight_uncertainty.mushrooms.game_records import RATE_WINDOWS, mean_curve
from doxa_replicate.weight_uncertainty.mushrooms.games import main_games, reported_seeds
from doxa_replicate.weight_uncertainty.mushrooms.settings import DEPARTURES, LEFT_OPEN, result_settings

MUSHROOM_GROUPS = {"all": "of all mushrooms", "best": "of the edible ones", "not_best": "of the poisonous ones"}
SHOWN_AGENTS = (BBB, GREEDY)


def run(options: ReplicationOptions) -> Numbers:
    window = max(1, game_size(options).steps // RATE_WINDOWS)
    by_column = {
        column: {
            "agents": {
                name: {group: mean_curve(games[name], f"eats_{group}") for group in MUSHROOM_GROUPS}
                for name in SHOWN_AGENTS
            }
        }
        for column, games in main_games(options).items()
    }
    windows = {len(numbers["agents"][BBB]["all"]["mean"]) for numbers in by_column.values()}
    bandit = bandits.mushrooms()
    edible = float((bandit.best == bandit.actions.index("eat")).double().mean())
    return {
        "settings": {**result_settings(options), "window": window},
        "seeds": reported_seeds(options),
        "steps": [window * (i + 1) for i in range(*windows)],
        "edible": edible,
        "columns": by_column,
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    steps, edible = result["numbers"]["steps"], result["numbers"]["edible"]
    return [
        chart
        for column, numbers in columns(result).items()
        for chart in _charts(column, numbers["agents"], steps, edible)
    ]


def _charts(column: str, agents: Mapping[str, Any], steps: Sequence[int], edible: float) -> list[Chart]:
    first = {name: agents[name]["all"]["mean"][0] for name in SHOWN_AGENTS}
    caption = (
        f"In the first {steps[0]:,} steps BBB ate {first[BBB]:.0%} of all mushrooms and the greedy agent "
        f"{first[GREEDY]:.0%}; {edible:.0%} are edible."
    )
    return [
        Chart(
            f"Share eaten {group_name}, {column}",
            caption,
            "step",
            "share eaten",
            [ChartLine(name, steps, agents[name][group]["mean"], agents[name][group]["se"]) for name in SHOWN_AGENTS],
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
        "note": "the document prints no values; means of three runs. Its code saves what is remembered every 4,096 "
        "steps, and nothing in it counts that",
    },
    left_open=LEFT_OPEN,
    departures=DEPARTURES,
    durations=("some seconds", "half an hour on a GPU, its games shared with figure 23"),
    show=show,
    group="bandits",
)
