"""Figure 26: single games, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from doxa.bandits import paired
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, GREEDY
from doxa_replicate.weight_uncertainty.mushrooms.game_records import final_values, format_interval
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    DEPARTURES,
    LEFT_OPEN,
    play_agents,
    reported_seeds,
    result_settings,
)

NARROWER_BBB = "BBB, σ₁ = 0.75"


def run(options: ReplicationOptions) -> Numbers:
    games_by_agent = {
        name: agent_games
        for kind in ("thompson", "greedy")
        for name, agent_games in play_agents(options, kind).reported.items()
    }
    shown_agents = (BBB, NARROWER_BBB, GREEDY)
    games = {
        name: [[float(f"{v:.5g}") for v in game["regret"]] for game in games_by_agent[name]] for name in shown_agents
    }
    differences = {
        name: asdict(paired(final_values(games_by_agent[name]), final_values(games_by_agent[GREEDY])))
        for name in (BBB, NARROWER_BBB)
    }
    return {
        "settings": result_settings(options),
        "seeds": reported_seeds(options),
        "steps": games_by_agent[BBB][0]["steps"],
        "games": games,
        "final": {name: final_values(games_by_agent[name]) for name in shown_agents},
        "differences": differences,
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    steps, seeds = numbers["steps"], result["seeds"]
    charts = []
    for name, difference in numbers["differences"].items():
        lines = [
            ChartLine(agent, steps, curve, faint=i > 0, like=agent)
            for agent in (name, GREEDY)
            for i, curve in enumerate(numbers["games"][agent])
        ]
        caption = f"{name} less greedy at the end, over {len(seeds)} seeds: {format_interval(difference)}."
        charts.append(Chart(f"{name} and greedy, game by game", caption, "step", "regret", lines))
    rows = [[name, *(f"{v:,.0f}" for v in final_regrets)] for name, final_regrets in numbers["final"].items()]
    return [*charts, ResultTable("Final regret of every game", ("agent", *(f"seed {s}" for s in seeds)), rows)]


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
    durations=("some seconds", "fifteen minutes on a GPU, its games shared with figure 23"),
    show=show,
    group="bandits",
)
