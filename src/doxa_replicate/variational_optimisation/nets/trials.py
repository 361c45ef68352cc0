"""A trial: a net that is searched for so many generations, and what came of it on the way."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import doxa
from doxa.engine.contracts import Learner
from doxa.judge import nll
from doxa.predict.belief import Belief
from doxa.storage.describe import describe
from doxa_replicate.contract import Ask
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.parts import kept, stem
from doxa_replicate.variational_optimisation.nets.pictures import Rows, pictures, placed, stretches

TUNING = 100  # the seed of nets that are chosen by, none that is reported
CLASSES = 10


class Step(nn.Module):
    """1 above 0, else 0: a unit without a slope anywhere."""

    def forward(self, z: Tensor) -> Tensor:
        return (z > 0).to(z.dtype)


def dense(hidden: Sequence[int], unit: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Linear maps from 784 pixels to ten classes, as torch starts them."""
    sizes = (784, *hidden)
    layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), unit())]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], CLASSES))


@dataclass(frozen=True)
class Trial:
    """How a net is trained: `learner` is told in the settings by its words, and `rates` are what is chosen from."""

    title: str
    learner: Learner
    net: Callable[[], nn.Module]
    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2)

    def told(self) -> dict[str, Any]:
        with torch.random.fork_rng(devices=[]):
            net = self.net()
        # Not its repr, in which versions of torch differ.
        layers = [type(module).__name__ for module in net.modules()]
        return {"learner": describe(self.learner), "net": [layers, [list(p.shape) for p in net.parameters()]]}


@dataclass(frozen=True)
class Length:
    """Generations in all, rows in each, and how many pass from one point of a curve to the next."""

    generations: int
    batch: int
    every: int


def trained(
    ask: Ask, part: str, trial: Trial, rate: float, seed: int, learn: Rows, judge: Rows, length: Length
) -> dict[str, Any]:
    """What the net in the middle comes to on other rows, on the way and at the end; kept as a part."""
    told = {
        **trial.told(),
        "rate": rate,
        "seed": seed,
        "rows": [len(learn[1]), len(judge[1])],
        "length": vars(length),
        "device": ask.device or "cpu",
    }
    part = f"search-{part}-{seed}"
    # By its settings: a trial that was broken off does not stand in the way of another.
    folder = None if ask.folder is None else ask.folder / stem(part, told)
    return kept(ask, part, told, partial(_trained, ask, trial, rate, seed, learn, judge, length, folder))


def _trained(
    ask: Ask, trial: Trial, rate: float, seed: int, learn: Rows, judge: Rows, length: Length, folder: Path | None
) -> dict[str, Any]:
    """A trial that goes on from where it was broken off: its curve is part of the fit's own history."""
    ask.say(f"{trial.title}: {length.generations:,} generations, rate {rate:g}, seed {seed}")
    learn, judge = placed(ask, learn), placed(ask, judge)
    some = (learn[0][: len(judge[1])], learn[1][: len(judge[1])])
    mark = time.perf_counter()

    def watch(belief: Belief) -> Mapping[str, float]:
        nonlocal mark
        seconds = time.perf_counter() - mark
        looks = {"held out": at_mean(belief, judge), "learned": at_mean(belief, some)}
        mark = time.perf_counter()
        return {f"{rows} {key}": look[key] for rows, look in looks.items() for key in look} | {"seconds": seconds}

    belief = fitted(ask, trial, rate, seed, learn, length, watch, folder)
    history = belief.record.history
    found = {
        "seed": seed,
        "rate": rate,
        **at_mean(belief, judge),
        "learned_accuracy": at_mean(belief, some)["accuracy"],
        # generation; accuracy and NLL of rows held out, and of rows learned from
        "curve": [
            [
                (k + 1) * length.every,
                *(row[f"{rows} {key}"] for rows in ("held out", "learned") for key in ("accuracy", "nll")),
            ]
            for k, row in enumerate(history)
        ],
        "seconds": sum(row["seconds"] for row in history),
    }
    if folder is not None:
        shutil.rmtree(folder)
    return found


def fitted(
    ask: Ask,
    trial: Trial,
    rate: float,
    seed: int,
    learn: Rows,
    length: Length,
    watch: Callable[[Belief], Mapping[str, float]],
    folder: Path | None,
) -> Belief:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = trial.net()
    return doxa.fit(
        net,
        stretches(learn, length.batch, length.every),
        learner=trial.learner,
        likelihood=doxa.likelihoods.categorical(),
        epochs=length.generations // length.every,
        lr=doxa.rates.cosine(rate),
        seed=seed,
        size=len(learn[1]),
        device=ask.device,
        checkpoint=folder,
        resume=folder is not None,
        progress=ask.progress,
        watch=watch,
    )


def at_mean(belief: Belief, rows: Rows) -> dict[str, float]:
    """Accuracy in per cent and NLL in nats of the net in the middle."""
    p = belief.predict_at_mean(rows[0]).mean
    return {"accuracy": 100 * float((p.argmax(1) == rows[1]).double().mean()), "nll": float(nll(p, rows[1]))}


def chosen_rate(ask: Ask, part: str, trial: Trial, learn: Rows, choose: Rows, length: Length) -> dict[str, Any]:
    """Every rate that was tried, by its accuracy on rows held out of the training set; and the best."""
    tried = {
        f"{rate:g}": trained(ask, f"{part}-rate-{rate:g}", trial, rate, TUNING, learn, choose, length)["accuracy"]
        for rate in (trial.rates if ask.full else trial.rates[-1:])
    }
    return {"tried": tried, "best": float(max(tried, key=lambda rate: tried[rate]))}


@dataclass(frozen=True)
class Contest:
    """Trials on one data set, each at the best of its rates, which shorter ones may find."""

    data: str
    part: str  # how names of parts begin
    trials: Mapping[str, Trial]
    length: Length
    short: Length

    def rate(self, ask: Ask, name: str) -> dict[str, Any]:
        rows = pictures(ask, self.data)
        return chosen_rate(ask, self._part(name), self.trials[name], rows.learn, rows.choose, self.short)

    def one(self, ask: Ask, name: str, seed: int) -> dict[str, Any]:
        """One net, by the rate that was chosen, learned from all training rows and judged by test rows."""
        rows, best = pictures(ask, self.data), self.rate(ask, name)["best"]
        return trained(ask, self._part(name), self.trials[name], best, seed, rows.train, rows.test, self.length)

    def found(self, ask: Ask, name: str, seeds: Sequence[int]) -> dict[str, Any]:
        """What all seeds of a trial come to."""
        own = [self.one(ask, name, seed) for seed in seeds]
        return {
            "rate": self.rate(ask, name),
            **{key: summary([one[key] for one in own]) for key in ("accuracy", "nll", "seconds")},
            "each": [one["accuracy"] for one in own],
            "curve": mean_curve(own, (0, 1)),
            "curves": [[point[:2] for point in one["curve"]] for one in own],
        }

    def _part(self, name: str) -> str:
        return f"{self.part}-{name.replace(',', '').replace(' ', '-').replace('/', '-')}"


def mean_curve(own: Sequence[Mapping[str, Any]], columns: Sequence[int]) -> list[list[float]]:
    """The mean over seeds of some columns of their curves, point by point."""
    points = range(len(own[0]["curve"]))
    return [[mean([one["curve"][k][j] for one in own]) for j in columns] for k in points]
