"""Ways to learn, side by side: settings are chosen on validation rows, and what was chosen is judged on test rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import doxa
from doxa.engine.contracts import Learner
from doxa.judge import ece, error, nll
from doxa.predict.belief import Belief
from doxa.storage.describe import describe
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.over_seeds import mean
from doxa_replicate.parts import cached_part
from doxa_replicate.verdicts import paired
from doxa_replicate.weight_uncertainty.further.rows import FewDigits, Rows

BATCH, DRAWS, RATE = 100, 20, 1e-3
KL_WEIGHTS = (10.0, 3.0, 1.0, 0.3, 0.1)
Scores = dict[str, float]
Judge = Callable[[Belief, FewDigits, int], Scores]  # of a belief, the rows and the place of its seed


@dataclass(frozen=True)
class Entrant:
    """A way to learn, with what may be chosen in it."""

    title: str
    settings: Mapping[str, Learner]  # by what tells them apart
    lr: float = RATE
    patience: int | None = None  # epochs without a better validation NLL, after which it stops


@dataclass(frozen=True)
class Arena:
    """What all entrants have in common."""

    name: str  # of its parts
    digits: FewDigits
    seeds: Sequence[int]
    units: int
    epochs: int
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the rows, which tell its parts from others

    def settings(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "epochs": self.epochs,
            "batch": BATCH,
            "draws": DRAWS,
            "rate": f"cosine from {RATE:g}",
            **self.facts,
        }


def enter(options: ReplicationOptions, arena: Arena, entrant: Entrant, judge: Judge) -> dict[str, Any]:
    """All settings of an entrant with all seeds as fleets; the setting with the least validation NLL is judged."""

    def make() -> dict[str, Any]:
        options.say(f"{arena.name}: {entrant.title}")
        beliefs = _train(options, arena, entrant)
        validation = {
            name: [validation_nll(belief, split.choose) for belief, split in _with_splits(of_setting, arena)]
            for name, of_setting in beliefs.items()
        }
        chosen = min(validation, key=lambda name: mean(validation[name]))
        judged = [judge(belief, arena.digits, k) for k, belief in enumerate(beliefs[chosen])]
        return {
            "chosen": chosen,
            "validation": validation,
            "scores": {key: [each[key] for each in judged] for key in judged[0]},
            "epochs": [len(belief.record.history) for belief in beliefs[chosen]],
        }

    name = "".join(c if c.isalnum() else "-" for c in entrant.title)
    return cached_part(options, f"{arena.name}-{name}", part_settings(options, arena, entrant), make)


def part_settings(options: ReplicationOptions, arena: Arena, entrant: Entrant) -> dict[str, Any]:
    """All that an entrant's part is asked with."""
    return arena.settings() | {
        "seeds": list(arena.seeds),
        "tried": {name: describe(learner) for name, learner in entrant.settings.items()},
        "lr": entrant.lr,
        "patience": entrant.patience,
        "device": options.device or "cpu",
    }


def _with_splits(beliefs: Sequence[Belief], arena: Arena) -> list[tuple[Belief, Any]]:
    return list(zip(beliefs, arena.digits.splits, strict=True))


def _train(options: ReplicationOptions, arena: Arena, entrant: Entrant) -> dict[str, list[Belief]]:
    """Beliefs by setting, one a seed; seeds differ in their rows, start, order and noise."""
    members = [(name, k) for name in entrant.settings for k, _ in enumerate(arena.seeds)]
    splits, early = arena.digits.splits, entrant.patience is not None
    beliefs = doxa.fleet(
        [start_net(options, arena, arena.seeds[k]) for _, k in members],
        arena.digits.pool,
        learners=[entrant.settings[name] for name, _ in members],
        likelihood=doxa.likelihoods.categorical(),
        seeds=[arena.seeds[k] for _, k in members],
        rows=[splits[k].learn for _, k in members],
        lr=doxa.rates.cosine(entrant.lr),
        epochs=arena.epochs,
        batch_size=BATCH,
        device=options.device,
        progress=options.progress,
        validation=[splits[k].choose for _, k in members] if early else None,
        patience=entrant.patience,
    )
    by_setting: dict[str, list[Belief]] = {}
    for (name, _), belief in zip(members, beliefs, strict=True):
        by_setting.setdefault(name, []).append(belief)
    return by_setting


def start_net(options: ReplicationOptions, arena: Arena, seed: int) -> torch.nn.Module:
    """784-h-h-10 with ReLUs, as torch starts it from a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net: torch.nn.Module = doxa.nets.mlp(784, (arena.units, arena.units), 10)
    return net.to(options.device or "cpu")


def validation_nll(belief: Belief, rows: Rows) -> float:
    x, y = rows
    return float(nll(belief.predict(x, DRAWS).mean, y))


def test_scores(belief: Belief, digits: FewDigits, place: int) -> Scores:
    """Error and ECE in per cent, NLL in nats, of all test rows."""
    x, y = digits.test
    p = belief.predict(x, DRAWS).mean
    return {"error": 100 * float(error(p, y)), "nll": float(nll(p, y)), "ece": 100 * float(ece(p, y))}


def kl_settings(learner: Callable[[float], Learner], kl_weights: Sequence[float] | None = None) -> dict[str, Learner]:
    """A learner with each of the KL weights that are tried."""
    return {f"KL weight {weight:g}": learner(weight) for weight in kl_weights or KL_WEIGHTS}


def belief_learner(kl_weight: float, noise: str = "local") -> Learner:
    """Independent Gaussians under N(0, 1)."""
    learner: Learner = doxa.learners.variational(
        doxa.priors.gaussian(1.0), doxa.noise.TABLE[noise], kl_weight=doxa.kl_weights.tempered(kl_weight)
    )
    return learner


def differences(entries: Mapping[str, Mapping[str, Any]], reference: str) -> dict[str, dict[str, Any]]:
    """Each entrant's scores less those of the reference, seed by seed, held against zero."""
    return {
        title: {
            score: paired(values, entries[reference]["scores"][score], below=0.0).as_dict()
            for score, values in entry["scores"].items()
        }
        for title, entry in entries.items()
        if title != reference
    }
