"""Figure 27: what the learning rate and the prior's variance do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa.replicate.contract import Artefact, Ask, Claim, Numbers
from doxa.replicate.show import Chart, Line, Shown, Table
from doxa.replicate.weight_uncertainty.mushroom_agents import BBB, WIDES
from doxa.replicate.weight_uncertainty.mushrooms import (
    DEPARTURES,
    LEFT_OPEN,
    TAKES,
    curve_of,
    finals,
    line_of,
    played,
    seeds_of,
    settings_of,
)

CLAIM = Claim(
    "C-WU-24",
    "prior and learning rate matter",
    "over the last tenth the expected regret with a rate of 1e-5 still grows over twice as fast as with 1e-4, and mean "
    "final realised regret varies by over 20 % with the prior's variance",
)
SLOW = "BBB, lr 1e-5"
PRIORS = {0.75: "BBB, σ₁ = 0.75", 1.0: BBB, **{wide: f"BBB, σ₁ = {wide:g}" for wide in WIDES}}


def run(ask: Ask) -> Numbers:
    found = played(ask, "thompson").reported
    shown = [SLOW, *(PRIORS[wide] for wide in sorted(PRIORS))]
    ends = {name: finals(found[name]) for name in shown}
    agents = {name: {"regret": curve_of(found[name], "regret"), "final": ends[name]} for name in shown}
    slopes = {name: line_of(found[name], "expected", 0.1).slope for name in (SLOW, BBB)}
    means = {wide: sum(ends[name]) / len(ends[name]) for wide, name in sorted(PRIORS.items())}
    varies = max(means.values()) / min(means.values()) - 1 if min(means.values()) > 0 else None
    holds = None if varies is None else slopes[SLOW] > 2 * slopes[BBB] and varies > 0.2
    value = {"slopes": slopes, "varies": varies}
    return {
        "settings": settings_of(ask),
        "seeds": seeds_of(ask),
        "verdicts": [CLAIM.judged(holds, value, None, seeds_of(ask), "as written")],
        "steps": found[BBB][0]["steps"],
        "agents": agents,
        "slopes": slopes,
        "priors": {f"{wide:g}": mean for wide, mean in means.items()},
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    steps, agents = numbers["steps"], numbers["agents"]

    def lines(names: Sequence[str]) -> list[Line]:
        return [Line(name, steps, agents[name]["regret"]["mean"], agents[name]["regret"]["se"]) for name in names]

    slopes = numbers["slopes"]
    rate = (
        f"Over the last tenth the expected regret still grows by {slopes[SLOW]:.3g} a step with a rate of 1e-5, and by "
        f"{slopes[BBB]:.3g} with 1e-4."
    )
    low, high = (pick(numbers["priors"].items(), key=lambda own: own[1]) for pick in (min, max))
    prior = f"Mean final regret from {low[1]:,.0f} with σ₁ = {low[0]} to {high[1]:,.0f} with σ₁ = {high[0]}."
    rows = [[f"{wide:g}", f"{numbers['priors'][f'{wide:g}']:,.0f}"] for wide in sorted(PRIORS)]
    return [
        Chart("Learning rate", rate, "step", "regret", lines([SLOW, BBB])),
        Chart("Scale of the wide Gaussian", prior, "step", "regret", lines([PRIORS[w] for w in sorted(PRIORS)])),
        Table("Mean final regret by the prior's wide scale", ("σ₁", "regret"), rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-27",
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
        "which prior variances were drawn: σ₁ of 0.1, 0.3, 0.75, 1 and 3 were taken, with −log σ₂ = 6",
    ),
    departures=DEPARTURES,
    takes=TAKES,
    show=show,
    group="bandits",
)
