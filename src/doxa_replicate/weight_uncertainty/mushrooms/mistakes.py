"""Figure 25: poisonous mushrooms eaten, and edible ones passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from doxa.bandits import paired
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, CHOSEN_NAMES, GREEDY
from doxa_replicate.weight_uncertainty.mushrooms.game_records import (
    POISON_REGRET,
    GameRecord,
    doubt_note,
    final_values,
    mean_curve,
)
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    DEPARTURES,
    LEFT_OPEN,
    play_agents,
    reported_seeds,
    result_settings,
)

MOSTLY_POISON = Claim(
    "C-WU-23",
    "what the greedy agent regrets more comes from eating poisonous mushrooms",
    "15 for each poisonous one that the greedy agent ate more is over half of the gap in expected regret; open where "
    "the greedy agent regrets no more",
)
MISTAKE_NAMES = {"false_positives": "poisonous ones eaten", "false_negatives": "edible ones passed"}


def run(options: ReplicationOptions) -> Numbers:
    games_by_agent = {
        name: poison_gap
        for kind in ("thompson", "greedy")
        for name, poison_gap in play_agents(options, kind).reported.items()
    }
    pairs = {"as written": (BBB, GREEDY), "chosen": (CHOSEN_NAMES["thompson"], CHOSEN_NAMES["greedy"])}
    agents = {
        name: {
            kind: {**mean_curve(games_by_agent[name], kind), "final": final_values(games_by_agent[name], kind)}
            for kind in MISTAKE_NAMES
        }
        for pair in pairs.values()
        for name in pair
    }
    shares = {
        setting: poison_share(games_by_agent[agent], games_by_agent[other_agent])
        for setting, (agent, other_agent) in pairs.items()
    }
    gaps = {
        setting: asdict(
            paired(
                final_values(games_by_agent[agent], "expected"), final_values(games_by_agent[other_agent], "expected")
            )
        )
        for setting, (agent, other_agent) in pairs.items()
    }
    verdicts = [
        MOSTLY_POISON.judge(
            None if poison_gap["share"] is None else poison_gap["share"] > 0.5,
            poison_gap,
            {"gap": gaps[setting]["se"]},
            reported_seeds(options),
            f"{setting}{doubt_note(gaps[setting], 'of the gap')}",
        )
        for setting, poison_gap in shares.items()
    ]
    return {
        "settings": result_settings(options),
        "seeds": reported_seeds(options),
        "verdicts": verdicts,
        "steps": games_by_agent[BBB][0]["steps"],
        "agents": agents,
        "shares": shares,
    }


def poison_share(games: Sequence[GameRecord], other_games: Sequence[GameRecord]) -> dict[str, float | None]:
    """How much more the other regrets on average, and the share of it that is poison; None where it is not more."""

    def mean_excess(name: str) -> float:
        return (sum(final_values(other_games, name)) - sum(final_values(games, name))) / len(games)

    gap, poison = mean_excess("expected"), POISON_REGRET * mean_excess("false_positives")
    return {"gap": gap, "by_poison": poison, "share": poison / gap if gap > 0 else None}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    steps, agents = numbers["steps"], numbers["agents"]
    counts = numbers["shares"]["as written"]
    side = "above" if counts["gap"] > 0 else "below"
    caption = (
        f"As written, the greedy agent's expected regret is {abs(counts['gap']):,.0f} {side} BBB's; it ate "
        f"{abs(counts['by_poison']) / POISON_REGRET:,.0f} poisonous ones "
        f"{'more' if counts['by_poison'] > 0 else 'fewer'}."
    )
    charts = [
        Chart(
            title[0].upper() + title[1:],
            caption,
            "step",
            "mushrooms",
            [ChartLine(name, steps, counts[kind]["mean"], counts[kind]["se"]) for name, counts in agents.items()],
        )
        for kind, title in MISTAKE_NAMES.items()
    ]
    rows = [[name, *(f"{counts[kind]['mean'][-1]:,.0f} ± {counts[kind]['se'][-1]:,.0f}" for kind in MISTAKE_NAMES)]
            for name, counts in agents.items()]  # fmt: skip
    return [
        *charts,
        ResultTable("At the end, mean and standard error over seeds", ("agent", *MISTAKE_NAMES.values()), rows),
    ]


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
    durations=("some seconds", "fifteen minutes on a GPU, its games shared with figure 23"),
    show=show,
    group="bandits",
)
