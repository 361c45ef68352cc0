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
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.parts import cached_part, stem
from doxa_replicate.variational_optimisation.nets.pictures import Rows, generation_loader, load_images, to_device

TUNING_SEED = 100  # the seed of nets that are chosen by, none that is reported
CLASSES = 10


class StepActivation(nn.Module):
    """1 above 0, else 0: a unit without a slope anywhere."""

    def _get_name(self) -> str:
        return "Step"  # as trials that are kept know it

    def forward(self, z: Tensor) -> Tensor:
        return (z > 0).to(z.dtype)


def dense_net(hidden: Sequence[int], unit: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Linear maps from 784 pixels to ten classes, as torch starts them."""
    sizes = (784, *hidden)
    layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), unit())]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], CLASSES))


@dataclass(frozen=True)
class NetTrial:
    """How a net is trained: `learner` is told in the settings by its words, and `rates` are what is chosen from."""

    title: str
    learner: Learner
    net: Callable[[], nn.Module]
    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2)

    def as_settings(self) -> dict[str, Any]:
        with torch.random.fork_rng(devices=[]):
            net = self.net()
        # Not its repr, in which versions of torch differ.
        layers = [module._get_name() for module in net.modules()]
        return {"learner": describe(self.learner), "net": [layers, [list(p.shape) for p in net.parameters()]]}


@dataclass(frozen=True)
class SearchLength:
    """Generations in all, rows in each, and how many pass from one point of a curve to the next."""

    generations: int
    batch: int
    every: int


def train_trial(
    options: ReplicationOptions,
    part: str,
    trial: NetTrial,
    rate: float,
    seed: int,
    learn_rows: Rows,
    judge_rows: Rows,
    length: SearchLength,
) -> dict[str, Any]:
    """What the net in the middle comes to on other rows, on the way and at the end; kept as a part."""
    settings = {
        **trial.as_settings(),
        "rate": rate,
        "seed": seed,
        "rows": [len(learn_rows[1]), len(judge_rows[1])],
        "length": vars(length),
        "device": options.device or "cpu",
    }
    part = f"search-{part}-{seed}"
    # By its settings: a trial that was broken off does not stand in the way of another.
    folder = None if options.folder is None else options.folder / stem(part, settings)
    return cached_part(
        options,
        part,
        settings,
        partial(_train_trial, options, trial, rate, seed, learn_rows, judge_rows, length, folder),
    )


def _train_trial(
    options: ReplicationOptions,
    trial: NetTrial,
    rate: float,
    seed: int,
    learn_rows: Rows,
    judge_rows: Rows,
    length: SearchLength,
    folder: Path | None,
) -> dict[str, Any]:
    """A trial that goes on from where it was broken off: its curve is part of the fit's own history."""
    options.say(f"{trial.title}: {length.generations:,} generations, rate {rate:g}, seed {seed}")
    learn_rows, judge_rows = to_device(options, learn_rows), to_device(options, judge_rows)
    sample_rows = (learn_rows[0][: len(judge_rows[1])], learn_rows[1][: len(judge_rows[1])])
    last_time = time.perf_counter()

    def watch(belief: Belief) -> Mapping[str, float]:
        nonlocal last_time
        seconds = time.perf_counter() - last_time
        scores = {"held out": scores_at_mean(belief, judge_rows), "learned": scores_at_mean(belief, sample_rows)}
        last_time = time.perf_counter()
        return {f"{rows} {key}": row_scores[key] for rows, row_scores in scores.items() for key in row_scores} | {
            "seconds": seconds
        }

    belief = fit_net(options, trial, rate, seed, learn_rows, length, watch, folder)
    history = belief.record.history
    outcome = {
        "seed": seed,
        "rate": rate,
        **scores_at_mean(belief, judge_rows),
        "learned_accuracy": scores_at_mean(belief, sample_rows)["accuracy"],
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
    return outcome


def fit_net(
    options: ReplicationOptions,
    trial: NetTrial,
    rate: float,
    seed: int,
    learn_rows: Rows,
    length: SearchLength,
    watch: Callable[[Belief], Mapping[str, float]],
    folder: Path | None,
) -> Belief:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = trial.net()
    return doxa.fit(
        net,
        generation_loader(learn_rows, length.batch, length.every),
        learner=trial.learner,
        likelihood=doxa.likelihoods.categorical(),
        epochs=length.generations // length.every,
        lr=doxa.rates.cosine(rate),
        seed=seed,
        size=len(learn_rows[1]),
        device=options.device,
        checkpoint=folder,
        resume=folder is not None,
        progress=options.progress,
        watch=watch,
    )


def scores_at_mean(belief: Belief, rows: Rows) -> dict[str, float]:
    """Accuracy in per cent and NLL in nats of the net in the middle."""
    probabilities = belief.predict_at_mean(rows[0]).mean
    return {
        "accuracy": 100 * float((probabilities.argmax(1) == rows[1]).double().mean()),
        "nll": float(nll(probabilities, rows[1])),
    }


def choose_rate(
    options: ReplicationOptions, part: str, trial: NetTrial, learn_rows: Rows, choice_rows: Rows, length: SearchLength
) -> dict[str, Any]:
    """Every rate that was tried, by its accuracy on rows held out of the training set; and the best."""
    accuracy_by_rate = {
        f"{rate:g}": train_trial(
            options, f"{part}-rate-{rate:g}", trial, rate, TUNING_SEED, learn_rows, choice_rows, length
        )["accuracy"]
        for rate in (trial.rates if options.full else trial.rates[-1:])
    }
    return {"tried": accuracy_by_rate, "best": float(max(accuracy_by_rate, key=lambda rate: accuracy_by_rate[rate]))}


@dataclass(frozen=True)
class TrialComparison:
    """Trials on one data set, each at the best of its rates, which shorter ones may find."""

    dataset: str
    part_prefix: str  # how names of parts begin
    trials: Mapping[str, NetTrial]
    length: SearchLength
    short_length: SearchLength

    def chosen_rate(self, options: ReplicationOptions, name: str) -> dict[str, Any]:
        rows = load_images(options, self.dataset)
        return choose_rate(
            options, self._part_name(name), self.trials[name], rows.learn, rows.choose, self.short_length
        )

    def train_one(self, options: ReplicationOptions, name: str, seed: int) -> dict[str, Any]:
        """One net, by the rate that was chosen, learned from all training rows and judged by test rows."""
        rows, best = load_images(options, self.dataset), self.chosen_rate(options, name)["best"]
        return train_trial(
            options, self._part_name(name), self.trials[name], best, seed, rows.train, rows.test, self.length
        )

    def summarise_trial(self, options: ReplicationOptions, name: str, seeds: Sequence[int]) -> dict[str, Any]:
        """What all seeds of a trial come to."""
        outcomes = [self.train_one(options, name, seed) for seed in seeds]
        return {
            "rate": self.chosen_rate(options, name),
            **{key: summary([outcome[key] for outcome in outcomes]) for key in ("accuracy", "nll", "seconds")},
            "each": [outcome["accuracy"] for outcome in outcomes],
            "curve": mean_curve(outcomes, (0, 1)),
            "curves": [[point[:2] for point in outcome["curve"]] for outcome in outcomes],
        }

    def _part_name(self, name: str) -> str:
        return f"{self.part_prefix}-{name.replace(',', '').replace(' ', '-').replace('/', '-')}"


def mean_curve(outcomes: Sequence[Mapping[str, Any]], columns: Sequence[int]) -> list[list[float]]:
    """The mean over seeds of some columns of their curves, point by point."""
    points = range(len(outcomes[0]["curve"]))
    return [[mean([outcome["curve"][k][column] for outcome in outcomes]) for column in columns] for k in points]
