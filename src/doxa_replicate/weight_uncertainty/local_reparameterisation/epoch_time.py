"""What an epoch costs with and without local reparameterisation."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

import doxa
from doxa.data.sets.curve import curve
from doxa.predict.belief import Belief
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.trainings import BATCH, TRAIN_SIZE, CurveSetting

MAX_RATIO, RATE = 0.85, 1e-3
IS_CHEAPER = Claim(
    "C-WU-9",
    "Local reparameterisation is cheaper",
    f"time of an epoch, local over shared, below {MAX_RATIO:g} on a GPU (0.67 in the document)",
)


def run(options: ReplicationOptions) -> Numbers:
    devices = ["cpu", "cuda"] if str(options.device or "").startswith("cuda") else ["cpu"]
    size = trainings.curve_size(options)
    settings = {"width": size.width, "samples": size.samples, "rounds": options.by_size(2, 7)}
    timings = {
        device: cached_part(
            options, f"regression-time-{device}", settings | {"device": device}, partial(time_epochs, options, device)
        )
        for device in devices
    }
    judged_timing = timings.get("cuda", timings["cpu"])
    holds = None if "cuda" not in timings else judged_timing["ratio"] < MAX_RATIO
    return {
        "settings": {
            "net": f"1-{size.width}-{size.width}-1, ReLU",
            "batch": BATCH,
            "samples": size.samples,
            "optimiser": f"Adam, {RATE:g}",
            "rounds": settings["rounds"],
            "epochs of a round": {device: round_epochs(options, device) for device in devices},
        },
        "seeds": [0],
        "milliseconds": timings,
        "verdicts": [
            IS_CHEAPER.judge(
                holds, judged_timing["ratio"], None, [0], "on a GPU" if "cuda" in timings else "on a CPU alone"
            )
        ],
    }


def time_epochs(options: ReplicationOptions, device: str) -> dict[str, Any]:
    """Milliseconds an epoch, shared and local in turn; the ratio is the median over rounds."""
    rounds = int(options.by_size(2, 7))
    seconds_by_noise: dict[str, list[float]] = {"shared": [], "local": []}
    for _ in range(rounds):
        for noise, seconds in seconds_by_noise.items():
            seconds.append(_seconds_per_epoch(options, noise == "local", device, round_epochs(options, device)))
    ratios = [
        local / shared for shared, local in zip(seconds_by_noise["shared"], seconds_by_noise["local"], strict=True)
    ]
    return {
        **{noise: 1e3 * statistics.median(seconds) for noise, seconds in seconds_by_noise.items()},
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def round_epochs(options: ReplicationOptions, device: str) -> int:
    """Of one round, the second half of which is timed."""
    return int(options.by_size(4, 12 if device == "cpu" else 300))


def _seconds_per_epoch(options: ReplicationOptions, local: bool, device: str, epochs: int) -> float:
    """Seconds an epoch, without the first half, in which kernels are chosen and steps recorded."""
    data, timestamps = curve(0, TRAIN_SIZE), []

    def record_time(belief: Belief) -> dict[str, float]:
        if device != "cpu":
            torch.cuda.synchronize()
        timestamps.append(time.perf_counter())
        return {}

    doxa.fit(
        doxa.nets.mlp(1, (trainings.curve_size(options).width,) * 2, 1),
        (data.x_train, data.y_train),
        learner=CurveSetting(local=local).build_learner(trainings.curve_size(options).samples),
        likelihood=doxa.likelihoods.gaussian(trainings.NOISE),
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
        [device, f"{timing['shared']:.2f}", f"{timing['local']:.2f}", f"{timing['ratio']:.2f}"]
        for device, timing in result["numbers"]["milliseconds"].items()
    ]
    return [ResultTable("Milliseconds an epoch", ("device", "shared", "local", "local over shared"), rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/lrt-time",
    order=17,
    group="regression",
    title="Local reparameterisation: the time of an epoch",
    requirements=("WU-41",),
    run=run,
    claims=(IS_CHEAPER,),
    reference={"milliseconds": {"shared": 317.8, "local": 211.7, "ratio": 0.667}},
    departures={
        "full": (
            "seven rounds of 300 epochs on a GPU and of 12 on its machine's CPU, shared and local in turn, for one "
            "training of 1,500 each",
        )
    },
    durations=("some seconds", "a minute on a GPU"),
    show=show,
)
