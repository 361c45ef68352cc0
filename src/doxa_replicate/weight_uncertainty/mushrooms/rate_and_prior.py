"""Figure 27: what the learning rate and the prior's variance do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary, with_error
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, WIDES, size_of
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    DEPARTURES,
    LEFT_OPEN,
    Told,
    curve_of,
    diverged,
    finals,
    line_of,
    once,
    played,
    seeds_of,
    settings_of,
    slope_error,
)

CLAIM = Claim(
    "C-WU-24",
    "prior and learning rate matter",
    "over the last tenth the expected regret with a rate of 1e-5 still grows over twice as fast as with 1e-4, and mean "
    "final realised regret varies by over 20 % with the prior's variance",
)
SLOW = "BBB, lr 1e-5"
LAST, VARIES, ONE = 0.1, 0.2, "one update a step"
PRIORS = {0.75: "BBB, σ₁ = 0.75", 1.0: BBB, **{wide: f"BBB, σ₁ = {wide:g}" for wide in WIDES}}


def run(ask: Ask) -> Numbers:
    found = {f"{size_of(ask).updates} updates a step": played(ask, "thompson").reported, ONE: once(ask)}
    told = {updates: told_of(games) for updates, games in found.items()}
    return {
        "settings": settings_of(ask),
        "seeds": seeds_of(ask),
        "verdicts": [
            CLAIM.judged(holds(own), own["value"], own["errors"], seeds_of(ask), f"as written, {updates}")
            for updates, own in told.items()
        ],
        "steps": found[ONE][BBB][0]["steps"],
        "updates": told,
    }


def told_of(games: Mapping[str, Sequence[Told]]) -> dict[str, Any]:
    """Curves and ends of every agent, and what the claim is decided by."""
    shown = [SLOW, *(PRIORS[wide] for wide in sorted(PRIORS))]
    ends = {name: finals(games[name]) for name in shown}
    priors = {f"{wide:g}": summary(ends[PRIORS[wide]]) for wide in sorted(PRIORS)}
    means = {name: mean(ends[name]) for name in PRIORS.values()}
    low, high = (pick(means, key=lambda name: means[name]) for pick in (min, max))
    return {
        "agents": {
            name: {"regret": curve_of(games[name], "regret"), "final": ends[name], "diverged": diverged(games[name])}
            for name in shown
        },
        "priors": priors,
        "value": {
            **{f"slope, {name}": line_of(games[name], "expected", LAST).slope for name in (SLOW, BBB)},
            "varies": means[high] / means[low] - 1 if means[low] > 0 else None,
        },
        "errors": {
            **{f"slope, {name}": slope_error(games[name], "expected", LAST) for name in (SLOW, BBB)},
            "varies": error([a / b - 1 if b > 0 else None for a, b in zip(ends[high], ends[low], strict=True)]),
        },
    }


def holds(own: Mapping[str, Any]) -> bool | None:
    value = own["value"]
    if value["varies"] is None:
        return None
    return bool(value[f"slope, {SLOW}"] > 2 * value[f"slope, {BBB}"] and value["varies"] > VARIES)


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    return [one for updates, own in numbers["updates"].items() for one in _shown(updates, own, numbers["steps"])]


def _shown(updates: str, own: Mapping[str, Any], steps: Sequence[int]) -> Sequence[Shown]:
    agents, value, priors = own["agents"], own["value"], own["priors"]

    def lines(names: Sequence[str]) -> list[Line]:
        return [Line(name, steps, agents[name]["regret"]["mean"], agents[name]["regret"]["se"]) for name in names]

    rate = (
        f"Over the last tenth the expected regret still grows by {value[f'slope, {SLOW}']:.3g} a step with a rate of "
        f"1e-5, and by {value[f'slope, {BBB}']:.3g} with 1e-4."
    )
    low, high = (pick(priors, key=lambda wide: priors[wide]["mean"]) for pick in (min, max))
    prior = (
        f"Mean final regret from {priors[low]['mean']:,.0f} with σ₁ = {low} to {priors[high]['mean']:,.0f} with "
        f"σ₁ = {high}."
    )
    rows = [[wide, with_error(each, 0)] for wide, each in priors.items()]
    by_scale = [PRIORS[wide] for wide in sorted(PRIORS)]
    return [
        Chart(f"Learning rate, {updates}", rate, "step", "regret", lines([SLOW, BBB])),
        Chart(f"Scale of the wide Gaussian, {updates}", prior, "step", "regret", lines(by_scale)),
        Table(f"Mean final regret by the prior's wide scale, {updates}", ("σ₁", "regret"), rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-27",
    place=34,
    title="Mushrooms: what the learning rate and the prior's variance do",
    rows=("WU-66",),
    run=run,
    claims=(CLAIM,),
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
    takes=("some seconds", "sixteen minutes on a GPU, most of its games shared with figure 23"),
    show=show,
    group="bandits",
)
