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
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_with_error, mean, standard_error, summary
from doxa_replicate.parts import cached_part
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.trainings import BATCH, TRAIN_SIZE, CurveSetting
from doxa_replicate.weight_uncertainty.local_reparameterisation.held_still import FrozenBelief
from doxa_replicate.weight_uncertainty.local_reparameterisation.priors import PRIORS

BATCHES = (8, 16, 32, 64, 128, 256, 512, 1024)
MAX_RATIO = 0.8
EXPECTED_SLOPE, SLOPE_TOLERANCE = -1.0, 0.15
LOWER_VARIANCE = Claim(
    "C-WU-7",
    "Local reparameterisation lowers the variance",
    f"variance of the free energy's differences from epoch to epoch: local over shared below {MAX_RATIO:g}, for both "
    "scales of the prior; variance of the gradients: below 1",
)
FALLS_WITH_BATCH = Claim(
    "C-WU-26",
    "With local reparameterisation the variance of the free energy falls as one over the batch",
    f"slope of log variance against log batch {EXPECTED_SLOPE:g} ± {SLOPE_TOLERANCE:g} for local noise, and flatter "
    "for shared noise",
)


def run(options: ReplicationOptions) -> Numbers:
    seeds = trainings.seeds(options)
    settings = trainings.common_settings(options) | {
        "seeds": seeds,
        "device": options.device or "cpu",
        "batches": BATCHES,
    }
    measurements = cached_part(options, "regression-variance", settings, partial(measure_variances, options, seeds))[
        "seeds"
    ]
    shared, local = trainings.belief_records(options, "gaussian"), trainings.belief_records(options, "local")
    difference_ratios = {
        f"{p}, {epochs_used}": [
            b["differences"][epochs_used] / a["differences"][epochs_used]
            for a, b in zip(shared[p], local[p], strict=True)
        ]
        for p in PRIORS
        for epochs_used in ("all", "last_third")
    }
    gradient_ratios = {
        parameter: [measurement["gradients"][parameter]["ratio"] for measurement in measurements]
        for parameter in ("mean", "rho")
    }
    slopes = {noise: [measurement["slopes"][noise] for measurement in measurements] for noise in ("shared", "local")}
    return {
        "settings": trainings.common_settings(options) | {"batches": BATCHES, "estimates": estimate_count(options)},
        "seeds": seeds,
        "variance": {
            noise: [
                mean([measurement["variance"][noise][k] for measurement in measurements]) for k in range(len(BATCHES))
            ]
            for noise in ("shared", "local")
        },
        "slopes": {noise: summary(v) for noise, v in slopes.items()},
        "gradients": {parameter: summary(v) for parameter, v in gradient_ratios.items()},
        "differences": {p: summary(v) for p, v in difference_ratios.items()},
        "verdicts": [*_judge_ratios(difference_ratios, gradient_ratios, seeds), _judge_slopes(slopes, seeds)],
    }


def _judge_ratios(
    difference_ratios: Mapping[str, Sequence[float]],
    gradient_ratios: Mapping[str, Sequence[float]],
    seeds: Sequence[int],
) -> list[Verdict]:
    """Whether variances with local noise are below those with shared noise, by which epochs are used."""
    return [
        LOWER_VARIANCE.judge(
            all(mean(difference_ratios[f"{p}, {epochs_used}"]) < MAX_RATIO for p in PRIORS)
            and all(mean(v) < 1 for v in gradient_ratios.values()),
            {f"differences, −log σ = {p}": mean(difference_ratios[f"{p}, {epochs_used}"]) for p in PRIORS}
            | {f"gradients by {parameter}": mean(v) for parameter, v in gradient_ratios.items()},
            max(standard_error(difference_ratios[f"{p}, {epochs_used}"]) or 0.0 for p in PRIORS),
            seeds,
            f"local over shared, {period}; gradients of a trained belief held still, batch {BATCH}",
        )
        for epochs_used, period in (
            ("all", "over all epochs, its fall included"),
            ("last_third", "over the last third of the epochs"),
        )
    ]


def _judge_slopes(slopes: Mapping[str, Sequence[float]], seeds: Sequence[int]) -> Verdict:
    """Whether the variance falls as one over the batch with local noise, and more slowly with shared noise."""
    return FALLS_WITH_BATCH.judge(
        abs(mean(slopes["local"]) - EXPECTED_SLOPE) <= SLOPE_TOLERANCE
        and mean(slopes["shared"]) > mean(slopes["local"]),
        {noise: mean(v) for noise, v in slopes.items()},
        {noise: standard_error(v) for noise, v in slopes.items()},
        seeds,
        "a trained belief held still, one draw, batches with replacement",
    )


def estimate_count(options: ReplicationOptions) -> int:
    """Estimates behind every variance."""
    return int(options.by_size(128, 2048))


def measure_variances(options: ReplicationOptions, seeds: Sequence[int]) -> dict[str, Any]:
    setting = CurveSetting()
    learner = setting.build_learner(trainings.curve_size(options).samples)
    beliefs = trainings.train_beliefs(
        options, [learner] * len(seeds), seeds, doxa.likelihoods.gaussian(setting.noise), watched=False
    )
    return {"seeds": [_belief_variances(options, belief, seed) for belief, seed in zip(beliefs, seeds, strict=True)]}


def _belief_variances(options: ReplicationOptions, belief: Belief, seed: int) -> dict[str, Any]:
    data = curve(seed, TRAIN_SIZE)
    copies = int(options.by_size(16, 64))
    learners = {noise: CurveSetting(local=noise == "local").build_learner(1) for noise in ("shared", "local")}
    frozen = {
        noise: FrozenBelief(belief, learner, (data.x_train, data.y_train), copies)
        for noise, learner in learners.items()
    }
    rounds = estimate_count(options) // copies
    variance = {
        noise: [
            float(_pooled_variance([TRAIN_SIZE * belief_copies.losses(batch) for _ in range(rounds)]))
            for batch in BATCHES
        ]
        for noise, belief_copies in frozen.items()
    }
    slopes = {noise: float(np.polyfit(np.log(BATCHES), np.log(v), 1)[0]) for noise, v in variance.items()}
    gradients = {
        noise: [belief_copies.gradients(BATCH) for _ in range(int(options.by_size(2, 8)))]
        for noise, belief_copies in frozen.items()
    }
    gradient_variance = {
        parameter: {
            noise: float(_pooled_variance([gradient[k] for gradient in gradient_rounds]).sum())
            for noise, gradient_rounds in gradients.items()
        }
        for k, parameter in enumerate(("mean", "rho"))
    }
    return {
        "variance": variance,
        "slopes": slopes,
        "gradients": {
            parameter: variances | {"ratio": variances["local"] / variances["shared"]}
            for parameter, variances in gradient_variance.items()
        },
    }


def _pooled_variance(parts: Sequence[Tensor]) -> Tensor:
    """The variance over everything in the first axes."""
    return torch.cat(list(parts)).double().var(0)


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    lines = [ChartLine(f"{noise} noise", BATCHES, v) for noise, v in numbers["variance"].items()]
    first = numbers["variance"]["local"][0]
    lines.append(ChartLine("one over the batch", BATCHES, [first * BATCHES[0] / b for b in BATCHES], dashed=True))
    caption = ", ".join(f"{noise} {slope['mean']:.2f}" for noise, slope in numbers["slopes"].items())
    rows = [
        [f"free energy from epoch to epoch, −log σ = {p.replace('_', ' ')}", format_with_error(v, 3)]
        for p, v in numbers["differences"].items()
    ]
    rows += [[f"gradients by {parameter}", format_with_error(v, 3)] for parameter, v in numbers["gradients"].items()]
    return [
        Chart(
            "Variance of the free energy's estimate against the batch",
            f"Slopes on these axes: {caption}.",
            "batch",
            "variance, nats²",
            lines,
            log_x=True,
            log_y=True,
        ),
        ResultTable("Variance with local noise over that with shared noise", ("of", "ratio"), rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/lrt-variance",
    order=16,
    group="regression",
    title="Local reparameterisation: variance of the free energy and of its gradients",
    requirements=("WU-40",),
    run=run,
    claims=(LOWER_VARIANCE, FALLS_WITH_BATCH),
    reference={"differences": {"shared": 444.8, "local": 244.0, "ratio": 0.549}},
    left_open=("at which belief the law of the batch is to hold: one trained with shared noise, −log σ = 1",),
    durations=("some seconds", "two minutes on a GPU"),
    show=show,
)
