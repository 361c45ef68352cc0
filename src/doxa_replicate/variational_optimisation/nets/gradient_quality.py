"""How near an estimated gradient comes to back-propagation's: local perturbations, weight space, low rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch.nn.functional as F

from doxa import search
from doxa.search import shaping
from doxa.search.score_function import Estimator
from doxa.storage.describe import describe
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary, with_error
from doxa_replicate.parts import kept
from doxa_replicate.show import Shown, Table
from doxa_replicate.variational_optimisation.nets.at_start import HIDDEN, ROWS, SCALE, Start, started

LESS = Claim(
    "C-VO-9",
    "Noise for every row makes the gradient less uncertain than noise that a batch shares",
    "variance of the estimate by the mean, local over weight space, like with like: below 1, at equal N and rows, in "
    "every repetition, without baselines, with them, and against pairs",
)
ESTIMATORS: dict[str, Estimator] = {
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
PAIRS = {
    "without baselines": ("local, no baseline", "weight space, independent"),
    "with baselines": ("local", "weight space, independent, baseline"),
    "against pairs": ("local", "weight space, pairs"),
}


def run(ask: Ask) -> Numbers:
    size, repeats, seeds = int(ask.of(20, 100)), int(ask.of(4, 20)), ask.these(1, 5)
    told = {"population": size, "repeats": repeats, "scale": SCALE, "net": HIDDEN, "rows": ROWS, "device": ask.device}
    parts = [
        kept(
            ask,
            f"search-quality-{seed}",
            told | {"seed": seed, "estimators": {name: describe(own) for name, own in ESTIMATORS.items()}},
            partial(_measured, ask, seed, size, repeats),
        )
        for seed in seeds
    ]
    found = {name: {key: summary([part[name][key] for part in parts]) for key in parts[0][name]} for name in ESTIMATORS}
    ratios = {
        name: [part[local]["variance"] / part[shared]["variance"] for part in parts]
        for name, (local, shared) in PAIRS.items()
    }
    return {
        "settings": {**told, "data": "Fashion-MNIST"},
        "seeds": seeds,
        "estimators": found,
        "verdicts": [
            LESS.judged(
                all(ratio < 1 for own in ratios.values() for ratio in own),
                {name: mean(own) for name, own in ratios.items()},
                {name: error(own) for name, own in ratios.items()},
                seeds,
                f"784-100-100-10 as torch starts it, σ = {SCALE:g}, N = {size}, {ROWS} rows of Fashion-MNIST",
            )
        ],
    }


def _measured(ask: Ask, seed: int, size: int, repeats: int) -> dict[str, Any]:
    """At equal N; and, at equal time, with as many perturbations more or fewer as local ones take to be made."""
    start = started(ask, seed)
    truth = start.slope()
    found = {}
    for name, estimator in ESTIMATORS.items():
        ask.say(f"gradient of {name}, seed {seed}")
        found[name] = _one(start, estimator, truth, size, repeats, seed)
    for name, own in found.items():
        same = max(2, 2 * round(size * found["local"]["seconds"] / own["seconds"] / 2))
        again = own if name == "local" else _one(start, ESTIMATORS[name], truth, same, repeats, seed)
        own |= {"perturbations_at_equal_time": same, "cosine_at_equal_time": again["cosine"]}
    return found


def _one(start: Start, estimator: Estimator, truth: Any, size: int, repeats: int, seed: int) -> dict[str, Any]:
    work = start.work(estimator, size, seed)
    start.slopes(work, 1)  # what is made once
    slopes, seconds = start.slopes(work, repeats)
    cosines = F.cosine_similarity(slopes, truth[None], 1)
    return {"cosine": float(cosines.mean()), "variance": float(slopes.var(0).sum()), "seconds": seconds}


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [
        [
            name,
            with_error(of["cosine"], 3),
            f"{of['variance']['mean']:.3g}",
            f"{1000 * of['seconds']['mean']:.0f}",
            f"{of['perturbations_at_equal_time']['mean']:.0f}",
            with_error(of["cosine_at_equal_time"], 3),
        ]
        for name, of in numbers["estimators"].items()
    ]
    heads = ("estimate", "cosine", "variance", "ms", "N in the same time", "cosine in the same time")
    size = found["settings"]["population"]
    return [Table(f"Against back-propagation, N = {size}", heads, rows, says="Ranks have another length: see cosines.")]


ARTEFACT = Artefact(
    name="variational-optimisation/gradient-quality",
    place=13,
    group="nets",
    title="How near estimated gradients come to true ones",
    rows=("VO-06", "VO-29", "VO-30", "VO-31"),
    run=run,
    claims=(LESS,),
    reference={"document": "local reparameterisation is derived and expected to vary less; it was left undone"},
    left_open=(
        "net, data, scale: 784-100-100-10 as torch starts it, 128 rows of Fashion-MNIST, σ = 0.05",
        "equal time: as many perturbations as can be evaluated, and replayed, while local ones are",
        "v = (σ∘σ)(A∘A), the product of squares; the document prints (σA)², the square of the product",
    ),
    departures={"quick": ("20 perturbations, four estimates",)},
    takes=("some seconds", "a minute"),
    show=show,
)
