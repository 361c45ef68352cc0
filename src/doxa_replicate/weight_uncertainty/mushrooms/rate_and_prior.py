"""Figure 27: what the learning rate and the prior's variance do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, mean, standard_error, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, WIDE_SCALES, game_size
from doxa_replicate.weight_uncertainty.mushrooms.game_records import (
    GameRecord,
    diverged_count,
    final_values,
    fit_end_line,
    mean_curve,
    slope_standard_error,
)
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    DEPARTURES,
    LEFT_OPEN,
    play_agents,
    play_with_one_update,
    reported_seeds,
    result_settings,
)

RATE_AND_PRIOR_MATTER = Claim(
    "C-WU-24",
    "prior and learning rate matter",
    "over the last tenth the expected regret with a rate of 1e-5 still grows over twice as fast as with 1e-4, and mean "
    "final realised regret varies by over 20 % with the prior's variance",
)
SLOW_AGENT = "BBB, lr 1e-5"
LAST_SHARE, LEAST_VARIATION, ONE_UPDATE = 0.1, 0.2, "one update a step"
AGENT_BY_WIDE_SCALE = {0.75: "BBB, σ₁ = 0.75", 1.0: BBB, **{wide: f"BBB, σ₁ = {wide:g}" for wide in WIDE_SCALES}}


def run(options: ReplicationOptions) -> Numbers:
    games_by_updates = {
        f"{game_size(options).updates} updates a step": play_agents(options, "thompson").reported,
        ONE_UPDATE: play_with_one_update(options),
    }
    summaries = {updates: summarise_agents(games) for updates, games in games_by_updates.items()}
    return {
        "settings": result_settings(options),
        "seeds": reported_seeds(options),
        "verdicts": [
            RATE_AND_PRIOR_MATTER.judge(
                claim_holds(summary_of_updates),
                summary_of_updates["value"],
                summary_of_updates["errors"],
                reported_seeds(options),
                f"as written, {updates}",
            )
            for updates, summary_of_updates in summaries.items()
        ],
        "steps": games_by_updates[ONE_UPDATE][BBB][0]["steps"],
        "updates": summaries,
    }


def summarise_agents(games: Mapping[str, Sequence[GameRecord]]) -> dict[str, Any]:
    """Curves and ends of every agent, and what the claim is decided by."""
    shown = [SLOW_AGENT, *(AGENT_BY_WIDE_SCALE[wide] for wide in sorted(AGENT_BY_WIDE_SCALE))]
    ends = {name: final_values(games[name]) for name in shown}
    priors = {f"{wide:g}": summary(ends[AGENT_BY_WIDE_SCALE[wide]]) for wide in sorted(AGENT_BY_WIDE_SCALE)}
    means = {name: mean(ends[name]) for name in AGENT_BY_WIDE_SCALE.values()}
    low, high = (pick(means, key=lambda name: means[name]) for pick in (min, max))
    return {
        "agents": {
            name: {
                "regret": mean_curve(games[name], "regret"),
                "final": ends[name],
                "diverged": diverged_count(games[name]),
            }
            for name in shown
        },
        "priors": priors,
        "value": {
            **{f"slope, {name}": fit_end_line(games[name], "expected", LAST_SHARE).slope for name in (SLOW_AGENT, BBB)},
            "varies": means[high] / means[low] - 1 if means[low] > 0 else None,
        },
        "errors": {
            **{
                f"slope, {name}": slope_standard_error(games[name], "expected", LAST_SHARE)
                for name in (SLOW_AGENT, BBB)
            },
            "varies": standard_error(
                [a / b - 1 if b > 0 else None for a, b in zip(ends[high], ends[low], strict=True)]
            ),
        },
    }


def claim_holds(agent_summary: Mapping[str, Any]) -> bool | None:
    value = agent_summary["value"]
    if value["varies"] is None:
        return None
    return bool(value[f"slope, {SLOW_AGENT}"] > 2 * value[f"slope, {BBB}"] and value["varies"] > LEAST_VARIATION)


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    return [
        element
        for updates, agent_summary in numbers["updates"].items()
        for element in _page_elements(updates, agent_summary, numbers["steps"])
    ]


def _page_elements(updates: str, agent_summary: Mapping[str, Any], steps: Sequence[int]) -> Sequence[PageElement]:
    agents, value, priors = agent_summary["agents"], agent_summary["value"], agent_summary["priors"]

    def lines(names: Sequence[str]) -> list[ChartLine]:
        return [ChartLine(name, steps, agents[name]["regret"]["mean"], agents[name]["regret"]["se"]) for name in names]

    rate = (
        f"Over the last tenth the expected regret still grows by {value[f'slope, {SLOW_AGENT}']:.3g} a step with a "
        "rate of "
        f"1e-5, and by {value[f'slope, {BBB}']:.3g} with 1e-4."
    )
    low, high = (pick(priors, key=lambda wide: priors[wide]["mean"]) for pick in (min, max))
    prior = (
        f"Mean final regret from {priors[low]['mean']:,.0f} with σ₁ = {low} to {priors[high]['mean']:,.0f} with "
        f"σ₁ = {high}."
    )
    rows = [[wide, format_with_error(regret, 0)] for wide, regret in priors.items()]
    by_scale = [AGENT_BY_WIDE_SCALE[wide] for wide in sorted(AGENT_BY_WIDE_SCALE)]
    return [
        Chart(f"Learning rate, {updates}", rate, "step", "regret", lines([SLOW_AGENT, BBB])),
        Chart(f"Scale of the wide Gaussian, {updates}", prior, "step", "regret", lines(by_scale)),
        ResultTable(f"Mean final regret by the prior's wide scale, {updates}", ("σ₁", "regret"), rows),
    ]


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
        "note": "the document prints no values",
    },
    left_open=(
        *LEFT_OPEN,
        "steps of learning for each of the game decide what a rate of 1e-5 can do: it is judged with one, too",
        "which prior variances were drawn: σ₁ of 0.1, 0.3, 0.75, 1 and 3 were taken, with −log σ₂ = 6",
    ),
    departures=DEPARTURES,
    durations=("some seconds", "sixteen minutes on a GPU, most of its games shared with figure 23"),
    show=show,
    group="bandits",
)
