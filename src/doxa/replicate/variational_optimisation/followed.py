"""A search whose weights, gradient and scales are followed from generation to generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

import doxa
from doxa import search
from doxa.belief import Belief
from doxa.replicate.contract import Ask
from doxa.replicate.parts import kept
from doxa.replicate.variational_optimisation.pictures import pictures, stretches
from doxa.replicate.variational_optimisation.trials import at_mean, dense

HIDDEN, SCALE, BATCH, RATE, MOMENTUM = (100,), 0.05, 128, 1e-3, 0.9
SCALE_RATE = 0.3  # times that of the mean, where scales are adapted
WINDOW, POINTS = 50, 200  # of a moving average, and of a curve that is kept
LAST = 0.2  # of all generations: what an end is


def generations(ask: Ask) -> int:
    return int(ask.of(60, 1000))


def settings(ask: Ask) -> dict[str, Any]:
    return {
        "net": [784, *HIDDEN, 10],
        "data": "MNIST",
        "scale": SCALE,
        "population": int(ask.of(20, 100)),
        "batch": BATCH,
        "rate": RATE,
        "momentum": MOMENTUM,
        "scale_rate": SCALE_RATE,
        "generations": generations(ask),
    }


def followed(ask: Ask, per: str, adapted: bool, seed: int) -> dict[str, Any]:
    """‖mean‖, ‖∇U‖ and the scales against the generation; kept as a part."""
    told = {**settings(ask), "per": per, "adapted": adapted, "seed": seed, "device": ask.device or "cpu"}
    part = f"search-{'adapted' if adapted else 'fixed'}-{per}-{seed}"
    return kept(ask, part, told, partial(_followed, ask, per, adapted, seed))


def _followed(ask: Ask, per: str, adapted: bool, seed: int) -> dict[str, Any]:
    ask.say(f"scales per {per}, {'adapted' if adapted else 'fixed'}, seed {seed}")
    rows, scales = pictures(ask, "MNIST").on(ask), []

    def watch(belief: Belief) -> Mapping[str, float]:
        own = belief.posterior.scale
        scales.append([float(own[slot.start]) for slot in belief.layout.random_slots])
        return {"norm": float(belief.posterior.mean.norm())}

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = dense(HIDDEN)
    belief = doxa.fit(
        net,
        stretches(rows.learn, BATCH, 1),
        learner=search.learner(
            search.weight_space(),
            size=settings(ask)["population"],
            scale=SCALE,
            per=per,
            scale_rate=SCALE_RATE if adapted else 0.0,
        ),
        likelihood=doxa.likelihoods.categorical(),
        epochs=generations(ask),
        lr=RATE,
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
        "variance": [[float(f"{s * s:.5g}") for s in scales[k]] for k in at],
        "slots": [slot.name for slot in belief.layout.random_slots],
        "end": {
            "gradient": float(gradient[-last:].mean()),
            "norm": history[-1]["norm"],
            **at_mean(belief, rows.choose),
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
