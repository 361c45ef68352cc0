"""What local reparameterisation does to the variance of the free energy and of its gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import doxa
from doxa.data.sets.curve import curve
from doxa.predict.belief import Belief
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary, with_error
from doxa_replicate.parts import kept
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.trainings import BATCH, TRAIN, Setting
from doxa_replicate.weight_uncertainty.local_reparameterisation.band import PRIORS
from doxa_replicate.weight_uncertainty.local_reparameterisation.held_still import HeldStill

BATCHES = (8, 16, 32, 64, 128, 256, 512, 1024)
LOWER = 0.8
SLOPE, ROOM = -1.0, 0.15
LESS = Claim(
    "C-WU-7",
    "Local reparameterisation lowers the variance",
    f"variance of the free energy's differences from epoch to epoch: local over shared below {LOWER:g}, for both "
    "scales of the prior; variance of the gradients: below 1",
)
AS_BATCH = Claim(
    "C-WU-26",
    "With local reparameterisation the variance of the free energy falls as one over the batch",
    f"slope of log variance against log batch {SLOPE:g} ± {ROOM:g} for local noise, and flatter for shared noise",
)


def run(ask: Ask) -> Numbers:
    own = trainings.seeds(ask)
    told = trainings.settings(ask) | {"seeds": own, "device": ask.device or "cpu", "batches": BATCHES}
    still = kept(ask, "regression-variance", told, partial(measured, ask, own))["seeds"]
    shared, local = trainings.records(ask, "gaussian"), trainings.records(ask, "local")
    epochs = {
        f"{p}, {when}": [
            b["differences"][when] / a["differences"][when] for a, b in zip(shared[p], local[p], strict=True)
        ]
        for p in PRIORS
        for when in ("all", "last_third")
    }
    gradients = {by: [one["gradients"][by]["ratio"] for one in still] for by in ("mean", "rho")}
    slopes = {noise: [one["slopes"][noise] for one in still] for noise in ("shared", "local")}
    return {
        "settings": trainings.settings(ask) | {"batches": BATCHES, "estimates": repeats(ask)},
        "seeds": own,
        "variance": {
            noise: [mean([one["variance"][noise][k] for one in still]) for k in range(len(BATCHES))]
            for noise in ("shared", "local")
        },
        "slopes": {noise: summary(v) for noise, v in slopes.items()},
        "gradients": {by: summary(v) for by, v in gradients.items()},
        "differences": {p: summary(v) for p, v in epochs.items()},
        "verdicts": [
            *(
                LESS.judged(
                    all(mean(epochs[f"{p}, {when}"]) < LOWER for p in PRIORS)
                    and all(mean(v) < 1 for v in gradients.values()),
                    {f"differences, −log σ = {p}": mean(epochs[f"{p}, {when}"]) for p in PRIORS}
                    | {f"gradients by {by}": mean(v) for by, v in gradients.items()},
                    max(error(epochs[f"{p}, {when}"]) or 0.0 for p in PRIORS),
                    own,
                    f"local over shared, {said}; gradients of a trained belief held still, batch {BATCH}",
                )
                for when, said in (
                    ("all", "over all epochs, its fall included"),
                    ("last_third", "over the last third of the epochs"),
                )
            ),
            AS_BATCH.judged(
                abs(mean(slopes["local"]) - SLOPE) <= ROOM and mean(slopes["shared"]) > mean(slopes["local"]),
                {noise: mean(v) for noise, v in slopes.items()},
                {noise: error(v) for noise, v in slopes.items()},
                own,
                "a trained belief held still, one draw, batches with replacement",
            ),
        ],
    }


def repeats(ask: Ask) -> int:
    """Estimates behind every variance."""
    return int(ask.of(128, 2048))


def measured(ask: Ask, own: Sequence[int]) -> dict[str, Any]:
    setting = Setting()
    learner = setting.learner(trainings.size(ask).samples)
    beliefs = trainings.learned(ask, [learner] * len(own), own, doxa.likelihoods.gaussian(setting.noise), watched=False)
    return {"seeds": [_of(ask, belief, seed) for belief, seed in zip(beliefs, own, strict=True)]}


def _of(ask: Ask, belief: Belief, seed: int) -> dict[str, Any]:
    data = curve(seed, TRAIN)
    many = int(ask.of(16, 64))
    learners = {noise: Setting(local=noise == "local").learner(1) for noise in ("shared", "local")}
    stills = {
        noise: HeldStill(belief, learner, (data.x_train, data.y_train), many) for noise, learner in learners.items()
    }
    rounds = repeats(ask) // many
    variance = {
        noise: [float(_pooled([TRAIN * still.losses(batch) for _ in range(rounds)])) for batch in BATCHES]
        for noise, still in stills.items()
    }
    slopes = {noise: float(np.polyfit(np.log(BATCHES), np.log(v), 1)[0]) for noise, v in variance.items()}
    sums = {noise: [still.gradients(BATCH) for _ in range(int(ask.of(2, 8)))] for noise, still in stills.items()}
    by = {
        which: {noise: float(_pooled([found[k] for found in all_]).sum()) for noise, all_ in sums.items()}
        for k, which in enumerate(("mean", "rho"))
    }
    return {
        "variance": variance,
        "slopes": slopes,
        "gradients": {which: own | {"ratio": own["local"] / own["shared"]} for which, own in by.items()},
    }


def _pooled(parts: Sequence[Tensor]) -> Tensor:
    """The variance over everything in the first axes."""
    return torch.cat(list(parts)).double().var(0)


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    lines = [Line(f"{noise} noise", BATCHES, v) for noise, v in numbers["variance"].items()]
    first = numbers["variance"]["local"][0]
    lines.append(Line("one over the batch", BATCHES, [first * BATCHES[0] / b for b in BATCHES], dashed=True))
    says = ", ".join(f"{noise} {own['mean']:.2f}" for noise, own in numbers["slopes"].items())
    rows = [
        [f"free energy from epoch to epoch, −log σ = {p.replace('_', ' ')}", with_error(v, 3)]
        for p, v in numbers["differences"].items()
    ]
    rows += [[f"gradients by {by}", with_error(v, 3)] for by, v in numbers["gradients"].items()]
    return [
        Chart(
            "Variance of the free energy's estimate against the batch",
            f"Slopes on these axes: {says}.",
            "batch",
            "variance, nats²",
            lines,
            log_x=True,
            log_y=True,
        ),
        Table("Variance with local noise over that with shared noise", ("of", "ratio"), rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/lrt-variance",
    place=16,
    group="regression",
    title="Local reparameterisation: variance of the free energy and of its gradients",
    rows=("WU-40",),
    run=run,
    claims=(LESS, AS_BATCH),
    reference={"differences": {"shared": 444.8, "local": 244.0, "ratio": 0.549}},
    left_open=("at which belief the law of the batch is to hold: one trained with shared noise, −log σ = 1",),
    takes=("some seconds", "two minutes on a GPU"),
    show=show,
)
