"""One worker, two or four: the same search to the last bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

import doxa
from doxa import search
from doxa.search.score_function import Estimator
from doxa.storage.describe import describe
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.parts import kept
from doxa_replicate.show import Shown, Table
from doxa_replicate.variational_optimisation.nets.pictures import pictures
from doxa_replicate.variational_optimisation.nets.trials import at_mean, dense

WORKERS = (1, 2, 4)
ESTIMATORS: dict[str, Estimator] = {
    "weight space": search.weight_space(),
    "low rank": search.low_rank(),
    "local": search.local(),
}
SAME = Claim(
    "C-VO-11",
    "What is found does not depend on the number of workers",
    "the mean and the scale after the last generation, bit for bit the same for 1, 2 and 4 workers, with every "
    "estimator",
)


def run(ask: Ask) -> Numbers:
    rows, workers = int(ask.of(256, 6400)), list(ask.of(WORKERS[:2], WORKERS))
    told = {"net": [784, 20, 10], "rows": rows, "population": 40, "batch": 128, "workers": workers}
    found = {
        name: kept(
            ask,
            f"search-workers-{name.replace(' ', '-')}",
            told | {"estimator": describe(ESTIMATORS[name])},
            partial(_found, ask, name, rows, workers),
        )
        for name in list(ESTIMATORS)[: ask.of(1, None)]
    }
    same = {name: len({one["digest"] for one in own.values()}) == 1 for name, own in found.items()}
    return {
        "settings": told,
        "seeds": [0],
        "found": found,
        "verdicts": [
            SAME.judged(
                all(same.values()),
                {name: "the same" if one else "not the same" for name, one in same.items()},
                None,
                [0],
                "MNIST, one epoch, processes of one machine; torchrun and Ray are held to it by tests",
            )
        ],
    }


def _found(ask: Ask, name: str, rows: int, crews: Sequence[int]) -> dict[str, Any]:
    x, y = (part[:rows] for part in pictures(ask, "MNIST").train)
    found = {}
    for workers in crews:
        ask.say(f"{name}, {workers} workers")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            net = dense((20,))
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
        found[str(workers)] = {"digest": digest(belief.posterior), **at_mean(belief, (x, y))}
    return found


def digest(posterior: Any) -> str:
    """The bits of mean and scale, in short."""
    return hashlib.sha256(torch.cat([posterior.mean, posterior.scale]).numpy().tobytes()).hexdigest()[:16]


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    rows = [
        [name, workers, own["digest"], f"{own['accuracy']:.2f}"]
        for name, of in found["numbers"]["found"].items()
        for workers, own in of.items()
    ]
    heads = ("perturbations", "workers", "bits of mean and scale", "accuracy %, rows learned from")
    return [Table("What was found", heads, rows, words=3)]


ARTEFACT = Artefact(
    name="variational-optimisation/workers",
    place=22,
    group="nets",
    title="The same search, whoever evaluates",
    rows=("VO-03", "VO-09"),
    run=run,
    claims=(SAME,),
    reference={"document": "workers share seeds and fitness, and rebuild every perturbation"},
    left_open=("net and data: 784-20-10 on MNIST, N = 40, 128 rows a generation",),
    departures={"quick": ("256 rows, one and two workers, weight space alone",)},
    takes=("some seconds", "three minutes"),
    show=show,
)
