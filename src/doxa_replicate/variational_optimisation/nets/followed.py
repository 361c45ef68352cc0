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
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.variational_optimisation.nets.pictures import generation_loader, load_images
from doxa_replicate.variational_optimisation.nets.trials import dense_net, scores_at_mean

HIDDEN, SCALE, BATCH, RATE, MOMENTUM = (100,), 0.05, 128, 1e-3, 0.9
SCALE_RATE = 0.3  # times that of the mean, where scales are adapted by the plain gradient
AVERAGE_WINDOW, CURVE_POINTS = 50, 200  # of a moving average, and of a curve that is kept
LAST_SHARE = 0.2  # of all generations: what an end is


def generation_count(options: ReplicationOptions) -> int:
    return int(options.by_size(60, 1000))


@dataclass(frozen=True)
class ScaleAdaptation:
    """How scales are treated: by how many, by which gradient, in which coordinate, and how fast."""

    per: str = "network"
    scale_rate: float = 0.0
    gradient: Gradient = plain
    coordinate: Coordinate = log_scale
    rate: float = RATE
    hidden: tuple[int, ...] = HIDDEN

    def build_learner(self, options: ReplicationOptions) -> Learner:
        return search.learner(
            search.weight_space(),
            size=common_settings(options)["population"],
            scale=SCALE,
            per=self.per,
            scale_rate=self.scale_rate,
            gradient=self.gradient,
            coordinate=self.coordinate,
        )


FIXED_SCALE, ADAPTED_SCALE = ScaleAdaptation(), ScaleAdaptation(scale_rate=SCALE_RATE)


def common_settings(options: ReplicationOptions) -> dict[str, Any]:
    return {
        "data": "MNIST",
        "scale": SCALE,
        "population": int(options.by_size(20, 100)),
        "batch": BATCH,
        "rate": RATE,
        "momentum": MOMENTUM,
        "generations": generation_count(options),
    }


def follow_search(options: ReplicationOptions, name: str, adaptation: ScaleAdaptation, seed: int) -> dict[str, Any]:
    """‖mean‖, ‖∇U‖ and the scales against the generation; kept as a part."""
    settings = {
        **common_settings(options),
        "net": [784, *adaptation.hidden, 10],
        "learner": describe(adaptation.build_learner(options)),
        "rate": adaptation.rate,
        "seed": seed,
        "device": options.device or "cpu",
    }
    part_name = f"search-scales-{name.replace(' ', '-')}-{seed}"
    return cached_part(options, part_name, settings, partial(_follow_search, options, name, adaptation, seed))


def _follow_search(options: ReplicationOptions, name: str, adaptation: ScaleAdaptation, seed: int) -> dict[str, Any]:
    options.say(f"scales, {name}, seed {seed}")
    rows, variances = load_images(options, "MNIST").to_device(options), []

    def watch(belief: Belief) -> Mapping[str, float]:
        by_layer = belief.posterior.scale.square().split(belief.layout.weights_per_layer())
        variances.append([float(layer_variances.mean()) for layer_variances in by_layer])
        return {"norm": float(belief.posterior.mean.norm())}

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = dense_net(adaptation.hidden)
    belief = doxa.fit(
        net,
        generation_loader(rows.learn, BATCH, 1),
        learner=adaptation.build_learner(options),
        likelihood=doxa.likelihoods.categorical(),
        epochs=generation_count(options),
        lr=adaptation.rate,
        optimiser=partial(torch.optim.SGD, momentum=MOMENTUM),
        seed=seed,
        size=len(rows.learn[1]),
        device=options.device,
        progress=options.progress,
        watch=watch,
    )
    history = belief.record.history
    gradient = np.array([row["gradient"] for row in history])
    last_count = max(1, round(LAST_SHARE * len(history)))
    indices = np.unique(np.linspace(0, len(history) - 1, CURVE_POINTS).round().astype(int))
    return {
        "generation": [int(k) + 1 for k in indices],
        "norm": [round(history[k]["norm"], 4) for k in indices],
        "gradient": [round(float(v), 3) for v in moving_average(gradient)[indices]],
        "variance": [[float(f"{v:.5g}") for v in variances[k]] for k in indices],  # by layer; the mean of each
        "end": {
            "gradient": float(gradient[-last_count:].mean()),
            "norm": history[-1]["norm"],
            **scores_at_mean(belief, rows.test),
        },
    }


def moving_average(values: Any) -> Any:
    """A centred moving average; near the ends, of what there is."""
    count, half = len(values), AVERAGE_WINDOW // 2
    sums = np.concatenate([[0.0], np.cumsum(values)])
    low, high = np.maximum(np.arange(count) - half, 0), np.minimum(np.arange(count) + half, count)
    return (sums[high] - sums[low]) / (high - low)


def mean_curve(records: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    return [float(v) for v in np.mean([record[key] for record in records], 0)]
