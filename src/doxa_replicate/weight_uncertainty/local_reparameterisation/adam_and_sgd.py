"""Does local reparameterisation learn sooner with plain gradient descent, where Adam hides it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import doxa
from doxa.errors import Diverged
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary
from doxa_replicate.parts import kept
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import curves
from doxa_replicate.weight_uncertainty.curve.measures import smoothed, thinned
from doxa_replicate.weight_uncertainty.curve.trainings import TRAIN, Setting

RATES = {
    "Adam": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
    "SGD": (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3),
}
SOONER, HALF = 0.10, 0.5
HIDDEN = Claim(
    "C-WU-25",
    "Local reparameterisation is no faster because Adam does not mind the scale of gradients",
    "epochs until the slower noise's final free energy is reached: with SGD at least "
    f"{100 * SOONER:g} % fewer with local noise, with Adam not; open where Adam does not decide it and SGD does not "
    "come half as far as Adam",
)


def run(ask: Ask) -> Numbers:
    own = ask.these(1, 3)
    told = trainings.settings(ask) | {"seeds": own, "device": ask.device or "cpu"}
    found = {
        name: kept(ask, f"regression-{name.lower()}", told | {"rates": RATES[name]}, partial(trained, ask, name, own))
        for name in RATES
    }
    rows = {name: compared(by_noise) for name, by_noise in found.items()}
    saved = {name: [1 - a["local"] / a["shared"] for a in row["epochs"]] for name, row in rows.items()}
    ways = {name: max(first(row) - end for end in row["final"].values()) for name, row in rows.items()}
    share = ways["SGD"] / ways["Adam"]
    return {
        "settings": trainings.settings(ask)
        | {"optimiser": {name: f"constant rates, {rates}" for name, rates in RATES.items()}, "samples": 1},
        "seeds": own,
        "rows": rows,
        "saved": {name: summary(v) for name, v in saved.items()},
        "verdicts": [
            HIDDEN.judged(
                verdict(mean(saved["Adam"]), mean(saved["SGD"]), share),
                {f"epochs saved with {name}": mean(v) for name, v in saved.items()} | {"SGD's way over Adam's": share},
                {f"epochs saved with {name}": error(v) for name, v in saved.items()},
                own,
                "one draw a step, constant rates, each noise at the best rate of those that no seed diverged with",
            )
        ],
    }


def verdict(adam: float, sgd: float, share: float) -> bool | None:
    """Whether epochs are saved with SGD alone, if SGD comes a share of Adam's way that can be compared."""
    if adam >= SOONER:
        return False
    return sgd >= SOONER if share >= HALF else None


def first(row: Mapping[str, Any]) -> float:
    """The free energy in the first epoch, the higher of both noises'."""
    return max(points[0][1] for points in row["curves"].values())


def trained(ask: Ask, name: str, own: Sequence[int]) -> dict[str, Any]:
    """Free energies by noise, rate and seed; what diverges is left out."""
    found: dict[str, Any] = {}
    for noise in ("shared", "local"):
        learner = Setting(local=noise == "local").learner(1)
        pairs = [(rate, seed) for rate in RATES[name] for seed in own]
        try:
            beliefs: Sequence[Any] = trainings.learned(
                ask,
                [learner] * len(pairs),
                [seed for _, seed in pairs],
                doxa.likelihoods.gaussian(trainings.NOISE),
                lr=[rate for rate, _ in pairs],
                optimiser=doxa.optimisers.sgd() if name == "SGD" else None,
                watched=False,
            )
        except Diverged as trouble:
            beliefs = trouble.beliefs
        found[noise] = {}
        for (rate, seed), belief in zip(pairs, beliefs, strict=True):
            history = [] if belief is None else belief.record.history
            if len(history) == trainings.size(ask).epochs:
                energy = [float(v) for v in smoothed(trainings.energies(belief))]
                data = [float(v) for v in smoothed([TRAIN * row["nll"] for row in history])]
                own_rate = found[noise].setdefault(f"{rate:g}", {})
                own_rate[f"{seed}"] = {"free_energy": energy, "data": data}
    return found


def compared(by_noise: Mapping[str, Any]) -> dict[str, Any]:
    """Each noise at its best rate, and when each reaches the free energy at which the slower one ends."""
    best = {}
    for noise, rates in by_noise.items():
        whole = {rate: own for rate, own in rates.items() if len(own) == max(map(len, rates.values()))}
        best[noise] = min(whole, key=lambda rate: mean([c["free_energy"][-1] for c in whole[rate].values()]))
    chosen = {noise: by_noise[noise][rate] for noise, rate in best.items()}
    return {
        "rates": best,
        "final": {noise: mean([c["free_energy"][-1] for c in own.values()]) for noise, own in chosen.items()},
        "finals": {
            noise: {rate: mean([c["free_energy"][-1] for c in own.values()]) for rate, own in rates.items()}
            for noise, rates in by_noise.items()
        },
        "epochs": reached(chosen, "free_energy"),
        "epochs_of_data_term": reached(chosen, "data"),
        "curves": {noise: thinned(next(iter(own.values()))["free_energy"]) for noise, own in chosen.items()},
    }


def reached(chosen: Mapping[str, Any], what: str) -> list[dict[str, int]]:
    """For each seed, when each noise first comes as low as the slower one at its end."""
    found = []
    for seed in [seed for seed in chosen["shared"] if seed in chosen["local"]]:
        threshold = max(own[seed][what][-1] for own in chosen.values())
        found.append(
            {
                noise: next(k + 1 for k, v in enumerate(own[seed][what]) if v <= threshold)
                for noise, own in chosen.items()
            }
        )
    return found


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [
        [
            name,
            noise,
            of["rates"][noise],
            f"{of['final'][noise]:,.0f}",
            f"{mean([e[noise] for e in of['epochs']]):.0f}",
            f"{mean([e[noise] for e in of['epochs_of_data_term']]):.0f}",
        ]
        for name, of in numbers["rows"].items()
        for noise in ("shared", "local")
    ]
    heads = ("optimiser", "noise", "rate", "final free energy", "epochs to the slower one's", "of the data term alone")
    return [
        *(
            curves(name, "Each noise at its best rate, first seed.", "free energy, nats", of["curves"], log_y=True)
            for name, of in numbers["rows"].items()
        ),
        Table("How soon", heads, rows, words=2),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/adam-and-sgd",
    place=18,
    group="regression",
    title="Local reparameterisation with Adam and with plain gradient descent",
    rows=("WU-40",),
    run=run,
    claims=(HIDDEN,),
    reference={"document": "supposes that Adam hides what the lower variance gives; it did not run SGD"},
    left_open=(
        "rates: each noise and optimiser at the one of a grid that ends at the lowest free energy, of those with which "
        "no seed diverged; of SGD that is the highest which is stable with both noises",
    ),
    departures={
        "full": (
            "one draw a step for the document's five, so that the noises differ the more; constant rates, since "
            "halving decides when a free energy comes to rest; three seeds",
        )
    },
    takes=("some seconds", "two minutes on a GPU"),
    show=show,
)
