"""Figure 23: cumulative regret on the mushrooms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa.bandits import mushrooms, paired, slope
from doxa_replicate.columns import CHOSEN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import Evidence
from doxa_replicate.verdicts import paired as paired_evidence
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, EPSILONS, GREEDY, NEURAL_LINEAR
from doxa_replicate.weight_uncertainty.mushrooms.game_records import (
    GameRecord,
    diverged_count,
    final_values,
    format_interval,
    growth,
    mean_curve,
)
from doxa_replicate.weight_uncertainty.mushrooms.games import GamesByAgent, choose, main_games, reported_seeds
from doxa_replicate.weight_uncertainty.mushrooms.grids import (
    AGENT_OF_KIND,
    EPSILON_BY_KIND,
    GRIDS,
    describe_defaults,
)
from doxa_replicate.weight_uncertainty.mushrooms.settings import (
    AGAINST_ITS_CODE,
    AGAINST_ITSELF,
    DEPARTURES,
    LEFT_OPEN,
    result_settings,
)

TOLERANCE = 0.25  # of the slope, and of how it changes
LAST_SHARE = 0.5  # of the curve, which the line is drawn through
REGRETS_LESS = Claim(
    "C-WU-21",
    "the BBB agent regrets less than the greedy one",
    "realised regret at the end, of BBB less that of the greedy agent, seed by seed: below 0",
)
LINEAR = Claim(
    "C-WU-22",
    "the regret of ε-greedy agents is linear",
    "expected regret of the last half over ε times that of as many random acts: within "
    f"{100 * TOLERANCE:g} % of 1; that of its second half less that of its first, over ε times that of as many random "
    f"acts: within {100 * TOLERANCE:g} % of 0",
)
MAIN_AGENTS = (BBB, GREEDY, *EPSILONS)


def run(options: ReplicationOptions) -> Numbers:
    seeds, games, act = reported_seeds(options), main_games(options), mushrooms().blind_regret
    return {
        "settings": result_settings(options),
        "seeds": seeds,
        "verdicts": [verdict for column, by_agent in games.items() for verdict in judge(by_agent, act, seeds, column)],
        "steps": games[CHOSEN][BBB][0]["steps"],
        "columns": {
            column: {"agents": {name: agent_curves(agent_games) for name, agent_games in by_agent.items()}}
            for column, by_agent in games.items()
        },
        "random_act": act,
        "grids": {kind: choose(options, kind).summary for kind in GRIDS},
    }


def agent_curves(games: Sequence[GameRecord]) -> dict[str, Any]:
    """The regret of an agent over its seeds, realised and expected, on the way and at the end."""
    return {
        "regret": mean_curve(games, "regret"),
        "expected": mean_curve(games, "expected"),
        "final": final_values(games),
        "final_expected": final_values(games, "expected"),
        "diverged": diverged_count(games),
    }


def judge(games: GamesByAgent, random_act: float, seeds: Sequence[int], column: str) -> list[Verdict]:
    """Who regrets less, and whether the regret of agents that explore is linear."""
    less = paired_evidence(final_values(games[BBB]), final_values(games[GREEDY]), below=0.0)
    linearity: dict[str, Evidence] = {}
    for name, epsilon in EPSILONS.items():
        steps, third, fourth = games[name][0]["steps"][-1], *quarters(games[name])
        act = epsilon * random_act * steps / 4
        linearity |= {
            f"{name}, last half": Evidence(
                [(a + b) / (2 * act) for a, b in zip(third, fourth, strict=True)], 1 - TOLERANCE, 1 + TOLERANCE
            ),
            f"{name}, its change": Evidence(
                [(b - a) / act for a, b in zip(third, fourth, strict=True)], -TOLERANCE, TOLERANCE
            ),
        }
    return [
        REGRETS_LESS.decide({f"{BBB} less {GREEDY}": less}, seeds, column, "regret"),
        LINEAR.decide(linearity, seeds, column, "in units of what ε costs who knows everything else"),
    ]


def quarters(games: Sequence[GameRecord]) -> tuple[list[float], list[float]]:
    """The expected regret of the third quarter of a game and of the fourth, seed by seed."""
    return growth(games, "expected", 0.5, 0.75), growth(games, "expected", 0.75)


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    agents = {column: by_column["agents"] for column, by_column in columns(result).items()}
    return [
        *(chart for column in agents for chart in _charts(column, agents[column], numbers["steps"])),
        *_tables(agents),
        *([_slope_table(agents, numbers["steps"], numbers["random_act"])] if "random_act" in numbers else []),
        *(_grid_table(kind, entry) for kind, entry in numbers["grids"].items()),
    ]


def _charts(column: str, agents: Mapping[str, Any], steps: Sequence[int]) -> list[Chart]:
    """Regret step by step, of all agents and, nearer, of those that do not explore at random."""

    def lines(names: Sequence[str]) -> list[ChartLine]:
        curves = {name: agents[name]["regret"] for name in names if name in agents}
        return [ChartLine(name, steps, curve["mean"], curve["se"]) for name, curve in curves.items()]

    difference = format_interval(paired(agents[BBB]["final"], agents[GREEDY]["final"]))
    caption = f"BBB less greedy at the end, by seed: {difference}. Means over seeds with their standard errors."
    return [
        Chart(f"Cumulative regret {column}", caption, "step", "regret", lines(MAIN_AGENTS)),
        Chart(
            f"Cumulative regret {column}, without the ε-greedy agents",
            "The same curves, nearer. Means over seeds with their standard errors.",
            "step",
            "regret",
            lines((BBB, GREEDY, NEURAL_LINEAR)),
        ),
    ]


def _tables(agents: Mapping[str, Any]) -> list[ResultTable]:
    """Regret at the end, and differences by pairs."""
    shown = {column: [name for name in (*MAIN_AGENTS, NEURAL_LINEAR) if name in agents[column]] for column in agents}
    final_rows = [
        [
            name,
            column,
            *(format_with_error(summary(agents[column][name][key]), 0) for key in ("final", "final_expected")),
            str(agents[column][name]["diverged"]),
        ]
        for column, names in shown.items()
        for name in names
    ]
    difference_rows = []
    for column, by_agent in agents.items():
        for kind, key in (("realised", "final"), ("expected", "final_expected")):
            entry = paired(by_agent[BBB][key], by_agent[GREEDY][key])
            difference_rows.append(
                [column, kind, *(f"{v:,.0f}" for v in (entry.mean, entry.low, entry.high)), f"{entry.won:.0%}"]
            )
    return [
        ResultTable(
            "Final regret, mean and standard error over seeds",
            ("agent", "settings", "realised", "expected", "diverged"),
            final_rows,
            text_columns=2,
        ),
        ResultTable(
            "BBB less greedy at the end, pairs of the same seed",
            ("settings", "of", "mean", "95 % from", "to", "seeds won"),
            difference_rows,
            text_columns=2,
        ),
    ]


def _slope_table(agents: Mapping[str, Any], steps: Sequence[int], random_act: float) -> ResultTable:
    """How fast the regret of agents that explore rises, beside what ε costs."""
    rows = []
    for column, by_agent in agents.items():
        for name, epsilon in EPSILONS.items():
            fits = [slope(by_agent[name][key]["mean"], LAST_SHARE, steps) for key in ("regret", "expected")]
            values = (epsilon * random_act, *(fit.slope for fit in fits), fits[0].r2)
            rows.append([name, column, *(f"{v:.3f}" for v in values)])
    headers = ("agent", "settings", "ε times a random act's", "realised", "expected", "R², realised")
    return ResultTable("Slope of the last half of the mean curve, a step", headers, rows, text_columns=2)


def _grid_table(kind: str, entry: Mapping[str, Any]) -> ResultTable:
    """The settings that a kind of agent was chosen from."""
    rows = [
        [_setting_cell(name, name == entry["chosen"]) + _diverged_note(row), f"{row['tuning']:,.0f}"]
        for name, row in entry["rows"].items()
    ]
    regret = "expected regret of the last half" if kind in EPSILON_BY_KIND else "expected regret"
    edge = f" Chosen at an edge of the grid: {', '.join(entry['at_edge'])}." if entry.get("at_edge") else ""
    return ResultTable(
        f"The grid of the agent “{AGENT_OF_KIND[kind]}”, the chosen setting bold",
        ("setting", f"{regret}, seeds {' and '.join(map(str, entry['tuning_seeds']))}"),
        rows,
        caption=f"Where nothing else is said: {describe_defaults(kind)}.{edge}",
    )


def _diverged_note(row: Mapping[str, Any]) -> str:
    return f" (diverged with seeds {', '.join(map(str, row['diverged']))})" if row["diverged"] else ""


def _setting_cell(name: str, chosen: bool) -> str:
    setting = name.partition(": ")[2] or "as said below"
    return f"**{setting}**" if chosen else setting


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-23",
    order=30,
    title="Mushrooms: cumulative regret of Thompson sampling and of greedy agents",
    requirements=("WU-19", "WU-56", "WU-57", "WU-58", "WU-59", "WU-60", "WU-61", "WU-62"),
    run=run,
    claims=(REGRETS_LESS, LINEAR),
    reference={
        "document": "BBB reaches the optimal policy before the greedy agent; at 1 % and 5 % regret grows linearly",
        "public_re_run": "at 50,000 steps: BBB 5,605 to 8,455, tuned greedy 4,125 to 7,165 (mean 5,277), 1 % greedy "
        "15,000 to 17,000, 5 % greedy 33,000 to 37,000",
        "note": f"the document prints no values; {AGAINST_ITSELF}; {AGAINST_ITS_CODE}",
    },
    left_open=LEFT_OPEN,
    departures=DEPARTURES,
    durations=("some seconds", "half an hour on a GPU"),
    show=show,
    group="bandits",
)
