"""Beliefs about MNIST whose minibatches pay the KL by halving or by even shares, and what is read off them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import doxa
from doxa.contracts import Schedule
from doxa.engine.contracts import Learner
from doxa.judge import ece, error, nll
from doxa.posteriors import MeanField
from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.digits.trainings.models import MEAN_START, RHO_START
from doxa_replicate.weight_uncertainty.digits.trainings.rows import load_digits
from doxa_replicate.weight_uncertainty.kl_split.resistance import resistance

Record = dict[str, Any]
RATE = 1e-3
DRAWS = 50


@dataclass(frozen=True)
class SplitSetting:
    """One belief: how its KL is shared, by which weight, at which constant rate, under which prior N(0, s²)."""

    halving: bool
    rate: float = RATE
    kl_weight: float = 1.0
    prior: float = 1.0

    def schedule(self) -> Schedule:
        split = doxa.kl_weights.geometric() if self.halving else doxa.kl_weights.uniform()
        return doxa.kl_weights.tempered(self.kl_weight, split)

    def build_learner(self) -> Learner:
        return doxa.learners.variational(
            doxa.priors.gaussian(self.prior),
            doxa.noise.local,
            posterior=doxa.posteriors.mean_field(rho=RHO_START, mean=MEAN_START),
            kl_weight=self.schedule(),
        )


@dataclass(frozen=True)
class SplitSize:
    """How much of everything."""

    width: int
    epochs: int
    batch: int

    def minibatches(self, rows: int) -> int:
        return math.ceil(rows / self.batch)


FULL, QUICK = SplitSize(100, 30, 128), SplitSize(16, 3, 128)
RATES = (3e-4, 1e-3, 3e-3)
KL_WEIGHTS = (1e-2, 1e-1, 1e1)
SETTINGS: dict[str, SplitSetting] = {
    **{f"halving, rate {rate:g}": SplitSetting(True, rate) for rate in RATES},
    **{f"halving, KL weight {weight:g}": SplitSetting(True, kl_weight=weight) for weight in KL_WEIGHTS},
    "halving, prior N(0, 0.3²)": SplitSetting(True, prior=0.3),
    **{f"even, KL weight {weight:g}": SplitSetting(False, kl_weight=weight) for weight in (1.0, 1e-1, 1e-2)},
}
PLAIN_HALVING = f"halving, rate {RATE:g}"  # the one that the others are variations of


def split_size(options: ReplicationOptions) -> SplitSize:
    return FULL if options.full else QUICK


def seeds(options: ReplicationOptions) -> list[int]:
    return options.seed_list(1, 5)


def common_settings(options: ReplicationOptions) -> dict[str, Any]:
    size = split_size(options)
    rows = len(load_digits(options).train[0])
    return {
        "net": f"784-{size.width}-{size.width}-10",
        "rows": rows,
        "epochs": size.epochs,
        "batch": size.batch,
        "minibatches": size.minibatches(rows),
        "noise": "local",
        "optimiser": "Adam, constant rates",
        "mean": MEAN_START,
        "rho": RHO_START,
        "draws": DRAWS,
    }


def split_records(options: ReplicationOptions) -> dict[str, list[Record]]:
    """What became of every setting, one record a seed: all are trained side by side."""
    settings = common_settings(options) | {
        "settings": {name: vars(each) for name, each in SETTINGS.items()},
        "seeds": seeds(options),
        "device": options.device or "cpu",
    }
    records: dict[str, list[Record]] = cached_part(options, "kl-split", settings, partial(_train, options))
    return records


def _train(options: ReplicationOptions) -> dict[str, list[Record]]:
    size, digits = split_size(options), load_digits(options)
    members = [(name, seed) for name in SETTINGS for seed in seeds(options)]
    options.say(f"KL split: {len(members)} nets")
    idle = idle_weights(digits.train[0], size.width)
    beliefs = doxa.fleet(
        [_start_net(size.width, seed) for _, seed in members],
        digits.train,
        learners=[SETTINGS[name].build_learner() for name, _ in members],
        likelihood=doxa.likelihoods.categorical(),
        seeds=[seed for _, seed in members],
        epochs=size.epochs,
        batch_size=size.batch,
        lr=[SETTINGS[name].rate for name, _ in members],
        device=options.device,
        progress=options.progress,
        watch=partial(_rho_of_each, idle),
    )
    records: dict[str, list[Record]] = {}
    for (name, seed), belief in zip(members, beliefs, strict=True):
        records.setdefault(name, []).append({"seed": seed, **_describe(options, belief, SETTINGS[name])})
    return records


def _start_net(width: int, seed: int) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return doxa.nets.mlp(784, (width, width), 10)


def idle_weights(x: Tensor, width: int) -> Tensor:
    """Which weights of the first layer, in the order of the flat vector, have a pixel that is black in every row."""
    return (x == 0).all(0).repeat(width)


def _rho_of_each(idle: Tensor, beliefs: Sequence[Belief]) -> list[dict[str, float]]:
    """The median ρ of all weights, and of those of the first layer that the data say nothing of."""
    rows = []
    for belief in beliefs:
        assert isinstance(belief.posterior, MeanField)
        rho = belief.posterior.rho[: belief.layout.random]
        first_layer = rho[next(slot.span for slot in belief.layout.random_slots if len(slot.shape) == 2)]
        rows.append({"rho": float(rho.median()), "rho_idle": float(first_layer[idle].median())})
    return rows


def _describe(options: ReplicationOptions, belief: Belief, setting: SplitSetting) -> Record:
    x, y = load_digits(options).test
    p = belief.predict(x, DRAWS).mean
    return {
        "rho": [row["rho"] for row in belief.record.history],
        "rho_idle": [row["rho_idle"] for row in belief.record.history],
        "scale": float(belief.posterior.scale[: belief.layout.random].median()),
        "error": 100 * float(error(p, y)),
        "nll": float(nll(p, y)),
        "ece": 100 * float(ece(p, y)),
        "kl": belief.record.history[-1]["kl"],
        "train_nll": belief.record.history[-1]["nll"],
        **resistance(belief, setting.build_learner(), load_digits(options).train, int(options.by_size(4, 100))),
    }
