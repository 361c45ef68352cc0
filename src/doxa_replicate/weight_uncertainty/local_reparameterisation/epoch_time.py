"""What an epoch costs with and without local reparameterisation."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

import doxa
from doxa.predict.belief import Belief
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.parts import cached_part
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import Evidence
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    BATCH,
    HALVED_TWICE,
    NOISE,
    RECIPE_AS_RUN,
    CurveRecipe,
    CurveSetting,
    curve_size,
)

MAX_RATIO, RATE = 0.85, 1e-3
IS_CHEAPER = Claim(
    "C-WU-9",
    "Local reparameterisation is cheaper",
    f"time of an epoch, local over shared, below {MAX_RATIO:g} on a GPU (0.67 in the document)",
)
# A chosen rate or split takes no other time. The KL is reported in closed form with either noise, lest an estimate of
# it be timed with one of them.
RECIPES = {AS_RUN: replace(RECIPE_AS_RUN, at_draws=False), AS_WRITTEN: HALVED_TWICE}


def run(options: ReplicationOptions) -> Numbers:
    devices = ["cpu", "cuda"] if str(options.device or "").startswith("cuda") else ["cpu"]
    size, rounds = curve_size(options), round_count(options)
    timings = {column: {device: _cached_timing(options, column, device) for device in devices} for column in RECIPES}
    return {
        "settings": {
            "net": f"1-{size.width}-{size.width}-1, ReLU",
            "batch": BATCH,
            "samples": size.samples,
            "optimiser": f"Adam, {RATE:g}",
            "rounds": rounds,
            "epochs of a round": {device: round_epochs(options, device) for device in devices},
        }
        | {column: recipe.as_dict() for column, recipe in RECIPES.items()},
        "seeds": [0],
        "columns": {column: {"milliseconds": by_device} for column, by_device in timings.items()},
        "verdicts": [_judge(by_device, column, rounds) for column, by_device in timings.items()],
    }


def _cached_timing(options: ReplicationOptions, column: str, device: str) -> dict[str, Any]:
    settings = {
        "width": curve_size(options).width,
        "samples": curve_size(options).samples,
        "rounds": round_count(options),
        "epochs": round_epochs(options, device),
        "recipe": RECIPES[column].as_dict(),
        "device": device,
    }
    name = f"regression-time-{column}-{device}".replace(" ", "-")
    return cached_part(options, name, settings, partial(time_epochs, options, RECIPES[column], device))


def _judge(by_device: Mapping[str, Any], column: str, rounds: int) -> Verdict:
    """What a GPU's rounds say; without one nothing is decided."""
    ratios = by_device["cuda"]["ratios"] if "cuda" in by_device else []
    return IS_CHEAPER.decide(
        {"local over shared": Evidence(ratios, below=MAX_RATIO)}, [0], column, f"{rounds} rounds, on a GPU"
    )


def time_epochs(options: ReplicationOptions, recipe: CurveRecipe, device: str) -> dict[str, Any]:
    """Milliseconds an epoch, shared and local in turn; the ratio is the median over rounds."""
    seconds_by_noise: dict[str, list[float]] = {"shared": [], "local": []}
    for _ in range(round_count(options)):
        for noise, seconds in seconds_by_noise.items():
            setting = CurveSetting(local=noise == "local")
            seconds.append(_seconds_per_epoch(options, setting, recipe, device))
    ratios = [
        local / shared for shared, local in zip(seconds_by_noise["shared"], seconds_by_noise["local"], strict=True)
    ]
    return {
        **{noise: 1e3 * statistics.median(seconds) for noise, seconds in seconds_by_noise.items()},
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def round_count(options: ReplicationOptions) -> int:
    return int(options.by_size(2, 5))


def round_epochs(options: ReplicationOptions, device: str) -> int:
    """Of one round, the second half of which is timed."""
    return int(options.by_size(4, 12 if device == "cpu" else 300))


def _seconds_per_epoch(options: ReplicationOptions, setting: CurveSetting, recipe: CurveRecipe, device: str) -> float:
    """Seconds an epoch, without the first half, in which kernels are chosen and steps recorded."""
    data, epochs = recipe.data.training(0), round_epochs(options, device)
    timestamps: list[float] = []

    def record_time(belief: Belief) -> dict[str, float]:
        if device != "cpu":
            torch.cuda.synchronize()
        timestamps.append(time.perf_counter())
        return {}

    doxa.fit(
        doxa.nets.mlp(1, (curve_size(options).width,) * 2, 1),
        (data.x_train, data.y_train),
        learner=setting.build_learner(curve_size(options).samples, recipe),
        likelihood=doxa.likelihoods.gaussian(NOISE),
        epochs=epochs,
        batch_size=BATCH,
        lr=RATE,
        device=device,
        progress=False,
        watch=record_time,
        watch_every=epochs // 2,
    )
    return (timestamps[1] - timestamps[0]) / (epochs // 2)


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    rows = [
        [column, device, f"{timing['shared']:.2f}", f"{timing['local']:.2f}", f"{timing['ratio']:.2f}"]
        for column, numbers in columns(result).items()
        for device, timing in numbers["milliseconds"].items()
    ]
    headers = ("column", "device", "shared", "local", "local over shared")
    return [ResultTable("Milliseconds an epoch", headers, rows, text_columns=2)]


ARTEFACT = Artefact(
    name="weight-uncertainty/lrt-time",
    order=17,
    group="regression",
    title="Local reparameterisation: the time of an epoch",
    requirements=("WU-41",),
    run=run,
    claims=(IS_CHEAPER,),
    reference={
        "milliseconds": {"shared": 317.8, "local": 211.7, "ratio": 0.667},
        "note": "how it was timed is in none of the authors' files; a ratio is all that can be compared",
    },
    departures={
        "full": (
            "five rounds of 300 epochs on a GPU and of 12 on its machine's CPU, shared and local in turn, for one "
            "training of 1,500 each",
        )
    },
    durations=("some seconds", "a minute on a GPU"),
    show=show,
)
