"""Figure 25: poisonous mushrooms eaten, and edible ones passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from doxa.bandits import paired
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, CHOSEN, GREEDY
from doxa_replicate.weight_uncertainty.mushrooms.games import (
    DEPARTURES,
    LEFT_OPEN,
    POISON,
    Told,
    curve_of,
    doubt,
    finals,
    played,
    seeds_of,
    settings_of,
)

CLAIM = Claim(
    "C-WU-23",
    "what the greedy agent regrets more comes from eating poisonous mushrooms",
    "15 for each poisonous one that the greedy agent ate more is over half of the gap in expected regret; open where "
    "the greedy agent regrets no more",
)
KINDS = {"false_positives": "poisonous ones eaten", "false_negatives": "edible ones passed"}


def run(ask: Ask) -> Numbers:
    found = {name: own for kind in ("thompson", "greedy") for name, own in played(ask, kind).reported.items()}
    pairs = {"as written": (BBB, GREEDY), "chosen": (CHOSEN["thompson"], CHOSEN["greedy"])}
    agents = {
        name: {kind: {**curve_of(found[name], kind), "final": finals(found[name], kind)} for kind in KINDS}
        for pair in pairs.values()
        for name in pair
    }
    shares = {setting: share(found[one], found[other]) for setting, (one, other) in pairs.items()}
    gaps = {
        setting: asdict(paired(finals(found[one], "expected"), finals(found[other], "expected")))
        for setting, (one, other) in pairs.items()
    }
    verdicts = [
        CLAIM.judged(
            None if own["share"] is None else own["share"] > 0.5,
            own,
            {"gap": gaps[setting]["se"]},
            seeds_of(ask),
            f"{setting}{doubt(gaps[setting], 'of the gap')}",
        )
        for setting, own in shares.items()
    ]
    return {
        "settings": settings_of(ask),
        "seeds": seeds_of(ask),
        "verdicts": verdicts,
        "steps": found[BBB][0]["steps"],
        "agents": agents,
        "shares": shares,
    }


def share(one: Sequence[Told], other: Sequence[Told]) -> dict[str, float | None]:
    """How much more the other regrets on average, and the share of it that is poison; None where it is not more."""

    def more(name: str) -> float:
        return (sum(finals(other, name)) - sum(finals(one, name))) / len(one)

    gap, poison = more("expected"), POISON * more("false_positives")
    return {"gap": gap, "by_poison": poison, "share": poison / gap if gap > 0 else None}


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    steps, agents = numbers["steps"], numbers["agents"]
    own = numbers["shares"]["as written"]
    side = "above" if own["gap"] > 0 else "below"
    says = (
        f"As written, the greedy agent's expected regret is {abs(own['gap']):,.0f} {side} BBB's; it ate "
        f"{abs(own['by_poison']) / POISON:,.0f} poisonous ones {'more' if own['by_poison'] > 0 else 'fewer'}."
    )
    charts = [
        Chart(
            words[0].upper() + words[1:],
            says,
            "step",
            "mushrooms",
            [Line(name, steps, own[kind]["mean"], own[kind]["se"]) for name, own in agents.items()],
        )
        for kind, words in KINDS.items()
    ]
    rows = [[name, *(f"{own[kind]['mean'][-1]:,.0f} ± {own[kind]['se'][-1]:,.0f}" for kind in KINDS)]
            for name, own in agents.items()]  # fmt: skip
    return [*charts, Table("At the end, mean and standard error over seeds", ("agent", *KINDS.values()), rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-25",
    place=32,
    title="Mushrooms: poisonous ones eaten and edible ones passed",
    rows=("WU-64",),
    run=run,
    claims=(CLAIM,),
    reference={
        "document": "the greedy agent's further regret is mostly poison",
        "note": "the document prints no values; means of three runs",
    },
    left_open=LEFT_OPEN,
    departures=DEPARTURES,
    takes=("some seconds", "fifteen minutes on a GPU, its games shared with figure 23"),
    show=show,
    group="bandits",
)
