"""To eat or not to eat: a policy found by rewards alone, whose decisions have no slope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import doxa
from doxa import search
from doxa.data import mushroom
from doxa.storage.describe import describe
from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import summary, with_error
from doxa_replicate.parts import kept
from doxa_replicate.show import Shown, Table

EDIBLE, POISON = 5.0, -15.0  # the mean reward of eating; passing by has none
EAT = 1
RATE = 1e-2


def reward(output: Tensor, y: Tensor) -> Tensor:
    """What is earned on average, mushroom by mushroom: the likelier action is taken, and its reward alone is seen."""
    eats = output.argmax(-1) == EAT
    return torch.where(eats, torch.where(y == EAT, EDIBLE, POISON), 0.0)


WAYS: dict[str, Any] = {
    "rewards, local": search.learner(maximise=reward, scale=0.1),
    "rewards, weight space": search.learner(search.weight_space(), maximise=reward, scale=0.1),
    "labels, back-propagation": doxa.learners.point(),
}


def net() -> nn.Module:
    return doxa.nets.mlp(95, (50,), 2)


def run(ask: Ask) -> Numbers:
    seeds, epochs = ask.these(1, 5), int(ask.of(1, 10))
    told = {"net": [95, 50, 2], "epochs": epochs, "rows": ask.of(1000, None), "device": ask.device or "cpu"}
    found = {
        name: [
            kept(
                ask,
                f"search-mushrooms-{name.replace(', ', '-').replace(' ', '-')}-{seed}",
                {**told, "seed": seed, "learner": describe(WAYS[name]), "rate": RATE, "rewards": [EDIBLE, POISON]},
                partial(_found, ask, name, seed, epochs),
            )
            for seed in seeds
        ]
        for name in WAYS
    }
    return {
        "settings": told,
        "seeds": seeds,
        "ways": {name: {key: summary([o[key] for o in own]) for key in own[0]} for name, own in found.items()},
        "never_eats": {name: sum(o["edible_left"] == 100 for o in own) for name, own in found.items()},
    }


def _found(ask: Ask, name: str, seed: int, epochs: int) -> dict[str, float]:
    ask.say(f"mushrooms by {name}, seed {seed}")
    table = mushroom("drop_first")
    x, y = torch.from_numpy(table.x), (torch.from_numpy(table.y) == 0).long()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    x, y = x[order][: ask.of(1000, None)], y[order][: ask.of(1000, None)]
    last = 3 * len(y) // 4
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        own = net()
    belief = doxa.fit(
        own,
        (x[:last], y[:last]),
        learner=WAYS[name],
        likelihood=doxa.likelihoods.categorical(),
        epochs=epochs,
        lr=doxa.rates.cosine(RATE),
        seed=seed,
        device=ask.device,
        progress=False,
    )
    p = belief.predict_at_mean(x[last:].to(belief.posterior.mean.device)).mean.cpu()
    truth = y[last:]
    best = torch.where(truth == EAT, EDIBLE, 0.0).mean()
    eats = p.argmax(1) == EAT
    return {
        "regret": float(best - reward(p, truth).mean()),
        "poisonous_eaten": 100 * float(eats[truth != EAT].double().mean()),
        "edible_left": 100 * float((~eats[truth == EAT]).double().mean()),
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    rows = [
        [name, with_error(of["regret"], 3), with_error(of["poisonous_eaten"], 2), with_error(of["edible_left"], 2)]
        for name, of in found["numbers"]["ways"].items()
    ]
    heads = ("learned from", "regret a mushroom", "poisonous eaten %", "edible left %")
    never = ", ".join(f"{many} ({name})" for name, many in found["numbers"]["never_eats"].items() if many)
    says = f"Seeds that never eat, where no reward is left to follow: {never}." if never else ""
    return [Table("A quarter of all mushrooms, which nothing was learned from", heads, rows, says=says)]


ARTEFACT = Artefact(
    name="variational-optimisation/mushroom-policy",
    place=21,
    group="nets",
    title="A policy for mushrooms, found by rewards alone",
    rows=("VO-41",),
    run=run,
    reference={"document": "reinforcement learning is what search is for; nothing is shown"},
    left_open=(
        "the task: mushrooms to be eaten or left, mean reward 5 for an edible one, −15 for a poisonous one, 0 for none",
        "net and step: 95-50-2, N = 100, σ = 0.1, ten epochs of Adam at 0.01, not chosen by anything",
        "games of whole episodes are a benchmark, search_episodes",
    ),
    departures={"quick": ("1,000 mushrooms, one epoch",)},
    takes=("some seconds", "a minute"),
    show=show,
)
