"""A search whose weights, gradient and scales are followed from generation to generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

import doxa
from doxa import search
from doxa.engine.contracts import Learner
from doxa.predict.belief import Belief
from doxa.search.distribution.coordinates import Coordinate, log_scale
from doxa.search.distribution.gradients import Gradient, plain
from doxa.storage.describe import describe
from doxa_replicate.contract import Ask
from doxa_replicate.parts import kept
from doxa_replicate.variational_optimisation.nets.pictures import pictures, stretches
from doxa_replicate.variational_optimisation.nets.trials import at_mean, dense

HIDDEN, SCALE, BATCH, RATE, MOMENTUM = (100,), 0.05, 128, 1e-3, 0.9
SCALE_RATE = 0.3  # times that of the mean, where scales are adapted by the plain gradient
WINDOW, POINTS = 50, 200  # of a moving average, and of a curve that is kept
LAST = 0.2  # of all generations: what an end is


def generations(ask: Ask) -> int:
    return int(ask.of(60, 1000))


@dataclass(frozen=True)
class Way:
    """How scales are treated: by how many, by which gradient, in which coordinate, and how fast."""

    per: str = "network"
    scale_rate: float = 0.0
    gradient: Gradient = plain
    coordinate: Coordinate = log_scale
    rate: float = RATE
    hidden: tuple[int, ...] = HIDDEN

    def learner(self, ask: Ask) -> Learner:
        return search.learner(
            search.weight_space(),
            size=settings(ask)["population"],
            scale=SCALE,
            per=self.per,
            scale_rate=self.scale_rate,
            gradient=self.gradient,
            coordinate=self.coordinate,
        )


FIXED, ADAPTED = Way(), Way(scale_rate=SCALE_RATE)


def settings(ask: Ask) -> dict[str, Any]:
    return {
        "data": "MNIST",
        "scale": SCALE,
        "population": int(ask.of(20, 100)),
        "batch": BATCH,
        "rate": RATE,
        "momentum": MOMENTUM,
        "generations": generations(ask),
    }


def followed(ask: Ask, name: str, way: Way, seed: int) -> dict[str, Any]:
    """‖mean‖, ‖∇U‖ and the scales against the generation; kept as a part."""
    told = {
        **settings(ask),
        "net": [784, *way.hidden, 10],
        "learner": describe(way.learner(ask)),
        "rate": way.rate,
        "seed": seed,
        "device": ask.device or "cpu",
    }
    part = f"search-scales-{name.replace(' ', '-')}-{seed}"
    return kept(ask, part, told, partial(_followed, ask, name, way, seed))


def _followed(ask: Ask, name: str, way: Way, seed: int) -> dict[str, Any]:
    ask.say(f"scales, {name}, seed {seed}")
    rows, variances = pictures(ask, "MNIST").on(ask), []

    def watch(belief: Belief) -> Mapping[str, float]:
        by_layer = belief.posterior.scale.square().split(belief.layout.layers())
        variances.append([float(own.mean()) for own in by_layer])
        return {"norm": float(belief.posterior.mean.norm())}

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = dense(way.hidden)
    belief = doxa.fit(
        net,
        stretches(rows.learn, BATCH, 1),
        learner=way.learner(ask),
        likelihood=doxa.likelihoods.categorical(),
        epochs=generations(ask),
        lr=way.rate,
        optimiser=partial(torch.optim.SGD, momentum=MOMENTUM),
        seed=seed,
        size=len(rows.learn[1]),
        device=ask.device,
        progress=ask.progress,
        watch=watch,
    )
    history = belief.record.history
    gradient = np.array([row["gradient"] for row in history])
    last = max(1, round(LAST * len(history)))
    at = np.unique(np.linspace(0, len(history) - 1, POINTS).round().astype(int))
    return {
        "generation": [int(k) + 1 for k in at],
        "norm": [round(history[k]["norm"], 4) for k in at],
        "gradient": [round(float(v), 3) for v in smoothed(gradient)[at]],
        "variance": [[float(f"{v:.5g}") for v in variances[k]] for k in at],  # by layer; the mean of each
        "end": {
            "gradient": float(gradient[-last:].mean()),
            "norm": history[-1]["norm"],
            **at_mean(belief, rows.test),
        },
    }


def smoothed(values: Any) -> Any:
    """A centred moving average; near the ends, of what there is."""
    many, half = len(values), WINDOW // 2
    sums = np.concatenate([[0.0], np.cumsum(values)])
    low, high = np.maximum(np.arange(many) - half, 0), np.minimum(np.arange(many) + half, many)
    return (sums[high] - sums[low]) / (high - low)


def mean_curve(own: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    return [float(v) for v in np.mean([one[key] for one in own], 0)]
