"""How near an estimated gradient comes to back-propagation's: local perturbations, weight space, low rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch.nn.functional as F

from doxa import search
from doxa.search import shaping
from doxa.search.score_function import Perturbation
from doxa.storage.describe import describe
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, mean, standard_error, summary
from doxa_replicate.parts import cached_part
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.at_start import (
    BATCH_ROWS,
    HIDDEN,
    SCALE,
    StartingPoint,
    starting_point,
)

LOCAL_VARIES_LESS = Claim(
    "C-VO-9",
    "Noise for every row makes the gradient less uncertain than noise that a batch shares",
    "variance of the estimate by the mean, local over weight space, like with like: below 1, at equal N and rows, in "
    "every repetition, without baselines, with them, and against pairs",
)
ESTIMATORS: dict[str, Perturbation] = {
    "local": search.local(),
    "local, no baseline": search.local(baseline=False),
    "weight space, pairs": search.weight_space(shaping=shaping.raw),
    "weight space, independent": search.weight_space(antithetic=False, shaping=shaping.raw),
    "weight space, independent, baseline": search.weight_space(antithetic=False, shaping=shaping.raw, baseline=True),
    "weight space, pairs, ranks": search.weight_space(),
    "low rank, pairs": search.low_rank(shaping=shaping.raw),
    "low rank, pairs, ranks": search.low_rank(),
}
# Local perturbations, and what they are held against.
COMPARED_PAIRS = {
    "without baselines": ("local, no baseline", "weight space, independent"),
    "with baselines": ("local", "weight space, independent, baseline"),
    "against pairs": ("local", "weight space, pairs"),
}


def run(options: ReplicationOptions) -> Numbers:
    size, repeats, seeds = int(options.by_size(20, 100)), int(options.by_size(4, 20)), options.seed_list(1, 5)
    settings = {
        "population": size,
        "repeats": repeats,
        "scale": SCALE,
        "net": HIDDEN,
        "rows": BATCH_ROWS,
        "device": options.device,
    }
    parts = [
        cached_part(
            options,
            f"search-quality-{seed}",
            settings | {"seed": seed, "estimators": {name: describe(values) for name, values in ESTIMATORS.items()}},
            partial(_measure_estimators, options, seed, size, repeats),
        )
        for seed in seeds
    ]
    summaries = {
        name: {key: summary([part[name][key] for part in parts]) for key in parts[0][name]} for name in ESTIMATORS
    }
    ratios = {
        name: [part[local]["variance"] / part[shared]["variance"] for part in parts]
        for name, (local, shared) in COMPARED_PAIRS.items()
    }
    return {
        "settings": {**settings, "data": "Fashion-MNIST"},
        "seeds": seeds,
        "estimators": summaries,
        "verdicts": [
            LOCAL_VARIES_LESS.judge(
                all(ratio < 1 for values in ratios.values() for ratio in values),
                {name: mean(values) for name, values in ratios.items()},
                {name: standard_error(values) for name, values in ratios.items()},
                seeds,
                f"784-100-100-10 as torch starts it, σ = {SCALE:g}, N = {size}, {BATCH_ROWS} rows of Fashion-MNIST",
            )
        ],
    }


def _measure_estimators(options: ReplicationOptions, seed: int, size: int, repeats: int) -> dict[str, Any]:
    """At equal N; and, at equal time, with as many perturbations more or fewer as local ones take to be made."""
    starting = starting_point(options, seed)
    true_gradient = starting.true_gradient()
    measurements = {}
    for name, estimator in ESTIMATORS.items():
        options.say(f"gradient of {name}, seed {seed}")
        measurements[name] = _measure_estimator(starting, estimator, true_gradient, size, repeats, seed)
    for name, measurement in measurements.items():
        equal_time_size = max(2, 2 * round(size * measurements["local"]["seconds"] / measurement["seconds"] / 2))
        at_equal_time = (
            measurement
            if name == "local"
            else _measure_estimator(starting, ESTIMATORS[name], true_gradient, equal_time_size, repeats, seed)
        )
        measurement |= {"perturbations_at_equal_time": equal_time_size, "cosine_at_equal_time": at_equal_time["cosine"]}
    return measurements


def _measure_estimator(
    starting: StartingPoint, estimator: Perturbation, true_gradient: Any, size: int, repeats: int, seed: int
) -> dict[str, Any]:
    running = starting.start_estimator(estimator, size, seed)
    starting.estimate_gradients(running, 1)  # what is made once
    estimates, seconds = starting.estimate_gradients(running, repeats)
    cosines = F.cosine_similarity(estimates, true_gradient[None], 1)
    return {"cosine": float(cosines.mean()), "variance": float(estimates.var(0).sum()), "seconds": seconds}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [
        [
            name,
            format_with_error(measurement["cosine"], 3),
            f"{measurement['variance']['mean']:.3g}",
            f"{1000 * measurement['seconds']['mean']:.0f}",
            f"{measurement['perturbations_at_equal_time']['mean']:.0f}",
            format_with_error(measurement["cosine_at_equal_time"], 3),
        ]
        for name, measurement in numbers["estimators"].items()
    ]
    headers = ("estimate", "cosine", "variance", "ms", "N in the same time", "cosine in the same time")
    size = result["settings"]["population"]
    return [
        ResultTable(
            f"Against back-propagation, N = {size}", headers, rows, caption="Ranks have another length: see cosines."
        )
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/gradient-quality",
    order=13,
    group="nets",
    title="How near estimated gradients come to true ones",
    requirements=("VO-06", "VO-29", "VO-30", "VO-31"),
    run=run,
    claims=(LOCAL_VARIES_LESS,),
    reference={"document": "local reparameterisation is derived and expected to vary less; it was left undone"},
    left_open=(
        "net, data, scale: 784-100-100-10 as torch starts it, 128 rows of Fashion-MNIST, σ = 0.05",
        "equal time: as many perturbations as can be evaluated, and replayed, while local ones are",
        "v = (σ∘σ)(A∘A), the product of squares; the document prints (σA)², the square of the product",
    ),
    departures={"quick": ("20 perturbations, four estimates",)},
    durations=("some seconds", "a minute"),
    show=show,
)
