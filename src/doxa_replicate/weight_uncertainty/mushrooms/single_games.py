"""Figure 26: single games, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa.bandits import paired
from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, GREEDY, scale_names
from doxa_replicate.weight_uncertainty.mushrooms.game_records import final_values, format_interval
from doxa_replicate.weight_uncertainty.mushrooms.games import thompson_settings, varied_games, varied_seeds
from doxa_replicate.weight_uncertainty.mushrooms.settings import DEPARTURES, LEFT_OPEN, result_settings

SHOWN_SCALES = (0.75, 1.0)


def run(options: ReplicationOptions) -> Numbers:
    settings, by_column, steps = thompson_settings(options), {}, None
    for column, games in varied_games(options).items():
        names = scale_names(settings[column])
        shown_agents = (*dict.fromkeys(names[wide] for wide in SHOWN_SCALES), GREEDY)
        steps = games[GREEDY][0]["steps"]
        by_column[column] = {
            "games": {
                name: [[float(f"{v:.5g}") for v in game["regret"]] for game in games[name]] for name in shown_agents
            },
            "final": {name: final_values(games[name]) for name in shown_agents},
        }
    return {
        "settings": result_settings(options),
        "seeds": varied_seeds(options),
        "steps": steps,
        "columns": by_column,
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    steps, seeds = result["numbers"]["steps"], result["seeds"]
    return [
        element
        for column, numbers in columns(result).items()
        for element in _page_elements(column, numbers, steps, seeds)
    ]


def _page_elements(
    column: str, numbers: Mapping[str, Any], steps: Sequence[int], seeds: Sequence[int]
) -> list[PageElement]:
    charts: list[PageElement] = []
    for name in numbers["games"]:
        if name == GREEDY:
            continue
        difference = paired(numbers["final"][name], numbers["final"][GREEDY])
        lines = [
            ChartLine(agent, steps, curve, faint=i > 0, like=agent)
            for agent in (name, GREEDY)
            for i, curve in enumerate(numbers["games"][agent])
        ]
        caption = f"{name} less greedy at the end, over {len(seeds)} seeds: {format_interval(difference)}."
        charts.append(Chart(f"{_full_name(name)} and greedy, game by game, {column}", caption, "step", "regret", lines))
    rows = [[name, *(f"{v:,.0f}" for v in final_regrets)] for name, final_regrets in numbers["final"].items()]
    headers = ("agent", *(f"seed {s}" for s in seeds))
    return [*charts, ResultTable(f"Final regret of every game, {column}", headers, rows)]


def _full_name(name: str) -> str:
    return f"{BBB} of figure 23" if name == BBB else name


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-26",
    order=33,
    title="Mushrooms: single games, in which either agent may win",
    requirements=("WU-65",),
    run=run,
    reference={
        "document": "two games, with σ₁ = 0.75 and with σ₁ = 1, in which the greedy agent wins",
        "note": "the document prints no values, and no spread",
    },
    left_open=LEFT_OPEN,
    departures=DEPARTURES,
    durations=("some seconds", "a quarter of an hour on a GPU beside the games of figure 23"),
    show=show,
    group="bandits",
)
