"""Figure 25: poisonous mushrooms eaten, and edible ones passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_with_error, mean, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import Evidence, paired
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, GREEDY
from doxa_replicate.weight_uncertainty.mushrooms.game_records import POISON_REGRET, final_values, mean_curve
from doxa_replicate.weight_uncertainty.mushrooms.games import GamesByAgent, main_games, reported_seeds
from doxa_replicate.weight_uncertainty.mushrooms.settings import DEPARTURES, LEFT_OPEN, result_settings

MOSTLY_POISON = Claim(
    "C-WU-23",
    "what the greedy agent regrets more comes from eating poisonous mushrooms",
    "expected regret of the greedy agent less BBB's, seed by seed: above 0; and 15 for each poisonous one that the "
    "greedy agent ate more, less half of that: above 0",
)
MISTAKE_NAMES = {"false_positives": "poisonous ones eaten", "false_negatives": "edible ones passed"}
SHOWN_AGENTS = (BBB, GREEDY)


def run(options: ReplicationOptions) -> Numbers:
    games, seeds = main_games(options), reported_seeds(options)
    by_column = {
        column: {
            "agents": {
                name: {
                    kind: {**mean_curve(by_agent[name], kind), "final": final_values(by_agent[name], kind)}
                    for kind in MISTAKE_NAMES
                }
                for name in SHOWN_AGENTS
            }
        }
        for column, by_agent in games.items()
    }
    return {
        "settings": result_settings(options),
        "seeds": seeds,
        "verdicts": [judge(by_agent, seeds, column) for column, by_agent in games.items()],
        "steps": next(iter(games.values()))[BBB][0]["steps"],
        "columns": by_column,
    }


def judge(games: GamesByAgent, seeds: Sequence[int], column: str) -> Verdict:
    """Whether the greedy agent regrets more, and whether more than half of that is poison."""

    def more(name: str) -> list[float]:
        values = (final_values(games[agent], name) for agent in (GREEDY, BBB))
        return [a - b for a, b in zip(*values, strict=True)]

    gaps = more("expected")
    poison = [POISON_REGRET * count for count in more("false_positives")]
    return MOSTLY_POISON.decide(
        {
            f"{GREEDY} less {BBB}": Evidence(gaps, above=0.0),
            "poison, less half of that": paired(poison, [gap / 2 for gap in gaps], above=0.0),
        },
        seeds,
        column,
        "expected regret",
    )


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    agents_by_column = {column: numbers["agents"] for column, numbers in columns(result).items()}
    steps = result["numbers"]["steps"]
    charts = [chart for column, agents in agents_by_column.items() for chart in _charts(column, agents, steps)]
    rows = [
        [name, column, *(format_with_error(summary(agents[name][kind]["final"]), 0) for kind in MISTAKE_NAMES)]
        for column, agents in agents_by_column.items()
        for name in SHOWN_AGENTS
    ]
    headers = ("agent", "settings", *MISTAKE_NAMES.values())
    return [
        *charts,
        ResultTable("At the end, mean and standard error over seeds", headers, rows, text_columns=2),
    ]


def _charts(column: str, agents: Mapping[str, Any], steps: Sequence[int]) -> list[Chart]:
    more = {kind: mean(agents[GREEDY][kind]["final"]) - mean(agents[BBB][kind]["final"]) for kind in MISTAKE_NAMES}
    caption = (
        f"At the end the greedy agent had eaten {_more_or_fewer(more['false_positives'])} poisonous ones than BBB, and "
        f"passed {_more_or_fewer(more['false_negatives'])} edible ones."
    )
    return [
        Chart(
            f"{title[0].upper() + title[1:]}, {column}",
            caption,
            "step",
            "mushrooms",
            [ChartLine(name, steps, agents[name][kind]["mean"], agents[name][kind]["se"]) for name in SHOWN_AGENTS],
        )
        for kind, title in MISTAKE_NAMES.items()
    ]


def _more_or_fewer(difference: float) -> str:
    return f"{abs(difference):,.0f} {'fewer' if difference < 0 else 'more'}"


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-25",
    order=32,
    title="Mushrooms: poisonous ones eaten and edible ones passed",
    requirements=("WU-64",),
    run=run,
    claims=(MOSTLY_POISON,),
    reference={
        "document": "the greedy agent's further regret is mostly poison",
        "note": "the document prints no values; means of three runs",
    },
    left_open=LEFT_OPEN,
    departures=DEPARTURES,
    durations=("some seconds", "half an hour on a GPU, its games shared with figure 23"),
    show=show,
    group="bandits",
)
