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
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.parts import cached_part
from doxa_replicate.show import PageElement, ResultTable

EDIBLE_REWARD, POISON_REWARD = 5.0, -15.0  # the mean reward of eating; passing by has none
EAT = 1
RATE = 1e-2


def reward(output: Tensor, y: Tensor) -> Tensor:
    """What is earned on average, mushroom by mushroom: the likelier action is taken, and its reward alone is seen."""
    eats = output.argmax(-1) == EAT
    return torch.where(eats, torch.where(y == EAT, EDIBLE_REWARD, POISON_REWARD), 0.0)


LEARNERS: dict[str, Any] = {
    "rewards, local": search.learner(maximise=reward, scale=0.1),
    "rewards, weight space": search.learner(search.weight_space(), maximise=reward, scale=0.1),
    "labels, back-propagation": doxa.learners.point(),
}


def policy_net() -> nn.Module:
    return doxa.nets.mlp(95, (50,), 2)


def run(options: ReplicationOptions) -> Numbers:
    seeds, epochs = options.seed_list(1, 5), int(options.by_size(1, 10))
    settings = {
        "net": [95, 50, 2],
        "epochs": epochs,
        "rows": options.by_size(1000, None),
        "device": options.device or "cpu",
    }
    scores_by_learner = {
        name: [
            cached_part(
                options,
                f"search-mushrooms-{name.replace(', ', '-').replace(' ', '-')}-{seed}",
                {
                    **settings,
                    "seed": seed,
                    "learner": describe(LEARNERS[name]),
                    "rate": RATE,
                    "rewards": [EDIBLE_REWARD, POISON_REWARD],
                },
                partial(_train_policy, options, name, seed, epochs),
            )
            for seed in seeds
        ]
        for name in LEARNERS
    }
    return {
        "settings": settings,
        "seeds": seeds,
        "ways": {
            name: {key: summary([scores[key] for scores in seed_scores]) for key in seed_scores[0]}
            for name, seed_scores in scores_by_learner.items()
        },
        "never_eats": {
            name: sum(scores["edible_left"] == 100 for scores in seed_scores)
            for name, seed_scores in scores_by_learner.items()
        },
    }


def _train_policy(options: ReplicationOptions, name: str, seed: int, epochs: int) -> dict[str, float]:
    options.say(f"mushrooms by {name}, seed {seed}")
    table = mushroom("drop_first")
    x, y = torch.from_numpy(table.x), (torch.from_numpy(table.y) == 0).long()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    x, y = x[order][: options.by_size(1000, None)], y[order][: options.by_size(1000, None)]
    train_rows = 3 * len(y) // 4
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = policy_net()
    belief = doxa.fit(
        net,
        (x[:train_rows], y[:train_rows]),
        learner=LEARNERS[name],
        likelihood=doxa.likelihoods.categorical(),
        epochs=epochs,
        lr=doxa.rates.cosine(RATE),
        seed=seed,
        device=options.device,
        progress=False,
    )
    probabilities = belief.predict_at_mean(x[train_rows:].to(belief.posterior.mean.device)).mean.cpu()
    y_test = y[train_rows:]
    best_reward = torch.where(y_test == EAT, EDIBLE_REWARD, 0.0).mean()
    eats = probabilities.argmax(1) == EAT
    return {
        "regret": float(best_reward - reward(probabilities, y_test).mean()),
        "poisonous_eaten": 100 * float(eats[y_test != EAT].double().mean()),
        "edible_left": 100 * float((~eats[y_test == EAT]).double().mean()),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    rows = [
        [
            name,
            format_with_error(scores["regret"], 3),
            format_with_error(scores["poisonous_eaten"], 2),
            format_with_error(scores["edible_left"], 2),
        ]
        for name, scores in result["numbers"]["ways"].items()
    ]
    headers = ("learned from", "regret a mushroom", "poisonous eaten %", "edible left %")
    never_text = ", ".join(
        f"{seed_count} ({name})" for name, seed_count in result["numbers"]["never_eats"].items() if seed_count
    )
    caption = f"Seeds that never eat, where no reward is left to follow: {never_text}." if never_text else ""
    return [ResultTable("A quarter of all mushrooms, which nothing was learned from", headers, rows, caption=caption)]


ARTEFACT = Artefact(
    name="variational-optimisation/mushroom-policy",
    order=21,
    group="nets",
    title="A policy for mushrooms, found by rewards alone",
    requirements=("VO-41",),
    run=run,
    reference={"document": "reinforcement learning is what search is for; nothing is shown"},
    left_open=(
        "the task: mushrooms to be eaten or left, mean reward 5 for an edible one, −15 for a poisonous one, 0 for none",
        "net and step: 95-50-2, N = 100, σ = 0.1, ten epochs of Adam at 0.01, not chosen by anything",
        "games of whole episodes are a benchmark, search_episodes",
    ),
    departures={"quick": ("1,000 mushrooms, one epoch",)},
    durations=("some seconds", "a minute"),
    show=show,
)
