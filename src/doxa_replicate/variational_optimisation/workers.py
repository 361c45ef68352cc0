"""One worker, two or four: the same search to the last bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

import doxa
from doxa import search
from doxa.search.score_function import Perturbation
from doxa.storage.describe import describe
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.pictures import load_images
from doxa_replicate.variational_optimisation.nets.trials import dense_net, scores_at_mean

WORKER_COUNTS = (1, 2, 4)
ESTIMATORS: dict[str, Perturbation] = {
    "weight space": search.weight_space(),
    "low rank": search.low_rank(),
    "local": search.local(),
}
SAME_FOR_ANY_WORKERS = Claim(
    "C-VO-11",
    "What is found does not depend on the number of workers",
    "the mean and the scale after the last generation, bit for bit the same for 1, 2 and 4 workers, with every "
    "estimator",
)


def run(options: ReplicationOptions) -> Numbers:
    rows, worker_counts = int(options.by_size(256, 6400)), list(options.by_size(WORKER_COUNTS[:2], WORKER_COUNTS))
    settings = {"net": [784, 20, 10], "rows": rows, "population": 40, "batch": 128, "workers": worker_counts}
    results_by_estimator = {
        name: cached_part(
            options,
            f"search-workers-{name.replace(' ', '-')}",
            settings | {"estimator": describe(ESTIMATORS[name])},
            partial(_train_with_workers, options, name, rows, worker_counts),
        )
        for name in list(ESTIMATORS)[: options.by_size(1, None)]
    }
    same_bits = {
        name: len({outcome["digest"] for outcome in by_workers.values()}) == 1
        for name, by_workers in results_by_estimator.items()
    }
    return {
        "settings": settings,
        "seeds": [0],
        "found": results_by_estimator,
        "verdicts": [
            SAME_FOR_ANY_WORKERS.judge(
                all(same_bits.values()),
                {name: "the same" if outcome else "not the same" for name, outcome in same_bits.items()},
                None,
                [0],
                "MNIST, one epoch, processes of one machine; torchrun and Ray are held to it by tests",
            )
        ],
    }


def _train_with_workers(
    options: ReplicationOptions, name: str, rows: int, worker_counts: Sequence[int]
) -> dict[str, Any]:
    x, y = (part[:rows] for part in load_images(options, "MNIST").train)
    by_workers = {}
    for workers in worker_counts:
        options.say(f"{name}, {workers} workers")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            net = dense_net((20,))
        rate = 0.0 if name == "low rank" else 0.1
        learner = search.learner(ESTIMATORS[name], size=40, scale_rate=rate, engine=search.engines.pool(workers))
        belief = doxa.fit(
            net,
            (x, y),
            learner=learner,
            likelihood=doxa.likelihoods.categorical(),
            epochs=1,
            lr=1e-2,
            seed=0,
            progress=False,
        )
        by_workers[str(workers)] = {"digest": posterior_digest(belief.posterior), **scores_at_mean(belief, (x, y))}
    return by_workers


def posterior_digest(posterior: Any) -> str:
    """The bits of mean and scale, in short."""
    return hashlib.sha256(torch.cat([posterior.mean, posterior.scale]).numpy().tobytes()).hexdigest()[:16]


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    rows = [
        [name, workers, outcome["digest"], f"{outcome['accuracy']:.2f}"]
        for name, by_workers in result["numbers"]["found"].items()
        for workers, outcome in by_workers.items()
    ]
    headers = ("perturbations", "workers", "bits of mean and scale", "accuracy %, rows learned from")
    return [ResultTable("What was found", headers, rows, text_columns=3)]


ARTEFACT = Artefact(
    name="variational-optimisation/workers",
    order=22,
    group="nets",
    title="The same search, whoever evaluates",
    requirements=("VO-03", "VO-09"),
    run=run,
    claims=(SAME_FOR_ANY_WORKERS,),
    reference={"document": "workers share seeds and fitness, and rebuild every perturbation"},
    left_open=("net and data: 784-20-10 on MNIST, N = 40, 128 rows a generation",),
    departures={"quick": ("256 rows, one and two workers, weight space alone",)},
    durations=("some seconds", "three minutes"),
    show=show,
)
