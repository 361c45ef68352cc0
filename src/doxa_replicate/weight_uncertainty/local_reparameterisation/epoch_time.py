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
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.parts import kept
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.trainings import BATCH, TRAIN, Setting

CHEAPER, RATE = 0.85, 1e-3
CHEAP = Claim(
    "C-WU-9",
    "Local reparameterisation is cheaper",
    f"time of an epoch, local over shared, below {CHEAPER:g} on a GPU (0.67 in the document)",
)


def run(ask: Ask) -> Numbers:
    devices = ["cpu", "cuda"] if str(ask.device or "").startswith("cuda") else ["cpu"]
    own = trainings.size(ask)
    told = {"width": own.width, "samples": own.samples, "rounds": ask.of(2, 7)}
    found = {
        device: kept(ask, f"regression-time-{device}", told | {"device": device}, partial(timed, ask, device))
        for device in devices
    }
    judged = found.get("cuda", found["cpu"])
    holds = None if "cuda" not in found else judged["ratio"] < CHEAPER
    return {
        "settings": {
            "net": f"1-{own.width}-{own.width}-1, ReLU",
            "batch": BATCH,
            "samples": own.samples,
            "optimiser": f"Adam, {RATE:g}",
            "rounds": told["rounds"],
            "epochs of a round": {device: epochs(ask, device) for device in devices},
        },
        "seeds": [0],
        "milliseconds": found,
        "verdicts": [
            CHEAP.judged(holds, judged["ratio"], None, [0], "on a GPU" if "cuda" in found else "on a CPU alone")
        ],
    }


def timed(ask: Ask, device: str) -> dict[str, Any]:
    """Milliseconds an epoch, shared and local in turn; the ratio is the median over rounds."""
    rounds = int(ask.of(2, 7))
    taken: dict[str, list[float]] = {"shared": [], "local": []}
    for _ in range(rounds):
        for noise, own in taken.items():
            own.append(_epoch(ask, noise == "local", device, epochs(ask, device)))
    ratios = [local / shared for shared, local in zip(taken["shared"], taken["local"], strict=True)]
    return {
        **{noise: 1e3 * statistics.median(own) for noise, own in taken.items()},
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def epochs(ask: Ask, device: str) -> int:
    """Of one round, the second half of which is timed."""
    return int(ask.of(4, 12 if device == "cpu" else 300))


def _epoch(ask: Ask, local: bool, device: str, epochs: int) -> float:
    """Seconds an epoch, without the first half, in which kernels are chosen and steps recorded."""
    data, marks = curve(0, TRAIN), []

    def mark(belief: Belief) -> dict[str, float]:
        if device != "cpu":
            torch.cuda.synchronize()
        marks.append(time.perf_counter())
        return {}

    doxa.fit(
        doxa.nets.mlp(1, (trainings.size(ask).width,) * 2, 1),
        (data.x_train, data.y_train),
        learner=Setting(local=local).learner(trainings.size(ask).samples),
        likelihood=doxa.likelihoods.gaussian(trainings.NOISE),
        epochs=epochs,
        batch_size=BATCH,
        lr=RATE,
        device=device,
        progress=False,
        watch=mark,
        watch_every=epochs // 2,
    )
    return (marks[1] - marks[0]) / (epochs // 2)


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    rows = [
        [device, f"{own['shared']:.2f}", f"{own['local']:.2f}", f"{own['ratio']:.2f}"]
        for device, own in found["numbers"]["milliseconds"].items()
    ]
    return [Table("Milliseconds an epoch", ("device", "shared", "local", "local over shared"), rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/lrt-time",
    place=17,
    group="regression",
    title="Local reparameterisation: the time of an epoch",
    rows=("WU-41",),
    run=run,
    claims=(CHEAP,),
    reference={"milliseconds": {"shared": 317.8, "local": 211.7, "ratio": 0.667}},
    departures={
        "full": (
            "seven rounds of 300 epochs on a GPU and of 12 on its machine's CPU, shared and local in turn, for one "
            "training of 1,500 each",
        )
    },
    takes=("some seconds", "a minute on a GPU"),
    show=show,
)
