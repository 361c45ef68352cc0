"""Figure 27: what the learning rate and the prior's variance do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_with_error, mean, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import Evidence
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, BBB_AS_WRITTEN, SLOW_AGENT, scale_names
from doxa_replicate.weight_uncertainty.mushrooms.game_records import diverged_count, final_values, growth, mean_curve
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    GamesByAgent,
    thompson_settings,
    varied_games,
    varied_seeds,
)
from doxa_replicate.weight_uncertainty.mushrooms.settings import DEPARTURES, LEFT_OPEN, result_settings

LAST_SHARE, FASTER, VARIATION = 0.1, 2.0, 0.2
RATE_AND_PRIOR_MATTER = Claim(
    "C-WU-24",
    "prior and learning rate matter",
    "expected regret of the last tenth with a rate of 1e-5 less twice that of BBB with its own, seed by seed: above 0; "
    "and final expected regret of the prior scale that is worst in the other seeds less 1.2 times that of the one that "
    "is best in them: above 0",
)
ScaleNames = Mapping[str, str]  # agents by the prior's wide scale


def run(options: ReplicationOptions) -> Numbers:
    seeds, settings = varied_seeds(options), thompson_settings(options)
    games = varied_games(options)
    scales = {column: {f"{wide:g}": name for wide, name in scale_names(settings[column]).items()} for column in games}
    return {
        "settings": result_settings(options),
        "seeds": seeds,
        "verdicts": [judge(by_agent, scales[column], seeds, column) for column, by_agent in games.items()],
        "steps": next(iter(games.values()))[BBB][0]["steps"],
        "columns": {
            column: {"agents": _agent_numbers(by_agent, scales[column]), "scales": scales[column]}
            for column, by_agent in games.items()
        },
    }


def _agent_numbers(games: GamesByAgent, scales: ScaleNames) -> dict[str, Any]:
    """The curves and ends of every agent."""
    return {
        name: {
            "regret": mean_curve(games[name], "regret"),
            "final": final_values(games[name]),
            "final_expected": final_values(games[name], "expected"),
            "last_tenth": growth(games[name], "expected", 1 - LAST_SHARE),
            "diverged": diverged_count(games[name]),
        }
        for name in (SLOW_AGENT, *scales.values())
    }


def judge(games: GamesByAgent, scales: ScaleNames, seeds: Sequence[int], column: str) -> Verdict:
    """Whether the rate and the prior matter."""
    slow, fast = (growth(games[name], "expected", 1 - LAST_SHARE) for name in (SLOW_AGENT, BBB))
    ends = {name: final_values(games[name], "expected") for name in scales.values()}
    return RATE_AND_PRIOR_MATTER.decide(
        {
            "rate": Evidence([a - FASTER * b for a, b in zip(slow, fast, strict=True)], above=0.0),
            "prior": Evidence([_worst_less_best(ends, k) for k in range(len(seeds))], above=0.0),
        },
        seeds,
        column,
        "expected regret",
    )


def _worst_less_best(ends: Mapping[str, Sequence[float]], k: int) -> float:
    """By how much two agents differ in game k beyond the border, the worst and the best of all in the other games.

    Those that are picked by the games that they are then compared in would differ by chance alone.
    """
    others = {name: mean([*values[:k], *values[k + 1 :]]) for name, values in ends.items()}
    worst, best = (pick(others, key=lambda name: others[name]) for pick in (max, min))
    return ends[worst][k] - (1 + VARIATION) * ends[best][k]


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    steps = result["numbers"]["steps"]
    return [
        element for column, numbers in columns(result).items() for element in _page_elements(column, numbers, steps)
    ]


def _page_elements(column: str, numbers: Mapping[str, Any], steps: Sequence[int]) -> Sequence[PageElement]:
    # A result without columns was of 16 updates a step, and of one.
    agents = numbers["agents"] if "agents" in numbers else next(iter(numbers["updates"].values()))["agents"]
    scales = numbers.get("scales", {f"{wide:g}": name for wide, name in scale_names(BBB_AS_WRITTEN).items()})

    def lines(names: Sequence[str]) -> list[ChartLine]:
        return [ChartLine(name, steps, agents[name]["regret"]["mean"], agents[name]["regret"]["se"]) for name in names]

    regrets = {wide: summary(agents[name]["final"]) for wide, name in scales.items()}
    low, high = (pick(regrets, key=lambda wide: mean(agents[scales[wide]]["final"])) for pick in (min, max))
    prior = (
        f"Mean final regret from {regrets[low]['mean']:,.0f} with σ₁ = {low} to {regrets[high]['mean']:,.0f} with "
        f"σ₁ = {high}."
    )
    rows = [[wide, format_with_error(regret, 0)] for wide, regret in regrets.items()]
    return [
        Chart(f"Learning rate, {column}", _rate_caption(agents), "step", "regret", lines([SLOW_AGENT, BBB])),
        Chart(f"Scale of the wide Gaussian, {column}", prior, "step", "regret", lines([*scales.values()])),
        ResultTable(f"Mean final regret by the prior's wide scale, {column}", ("σ₁", "regret"), rows),
    ]


def _rate_caption(agents: Mapping[str, Any]) -> str:
    if "last_tenth" not in agents[SLOW_AGENT]:
        return "Means over seeds with their standard errors."
    slow, fast = (mean(agents[name]["last_tenth"]) for name in (SLOW_AGENT, BBB))
    return f"In the last tenth the expected regret grows by {slow:,.0f} with a rate of 1e-5, by {fast:,.0f} with BBB's."


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-27",
    order=34,
    title="Mushrooms: what the learning rate and the prior's variance do",
    requirements=("WU-66",),
    run=run,
    claims=(RATE_AND_PRIOR_MATTER,),
    reference={
        "document": "with 1e-5 the agent has not converged after 50,000 steps; a wide prior explores too long, a "
        "narrow one too little",
        "note": "the document prints no values; halved every 5,000 steps, a rate of 1e-5 is 2e-8 at the end",
    },
    left_open=(
        *LEFT_OPEN,
        "which prior variances were drawn: σ₁ of 0.1, 0.3, 0.75, 1 and 3 were taken, with −log σ₂ = 6",
    ),
    departures=DEPARTURES,
    durations=("some seconds", "a quarter of an hour on a GPU beside the games of figure 23"),
    show=show,
    group="bandits",
)
