"""The searches of MNIST of the document's author: his net, his steps, and what is followed on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

import doxa
from doxa import search
from doxa.engine.contracts import Learner
from doxa.errors import Diverged
from doxa.judge import nll
from doxa.predict.belief import Belief
from doxa.weights.layout import call
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.parts import cached_part
from doxa_replicate.variational_optimisation.nets.as_run.unit_spread import UnitSpread
from doxa_replicate.variational_optimisation.nets.followed import CURVE_POINTS, LAST_SHARE, moving_average
from doxa_replicate.variational_optimisation.nets.pictures import Rows, load_images

SCALE, RATE, MOMENTUM, DECAY = 0.05, 0.05, 0.9, 0.001
SCALE_DAMPENING = 0.9
LOOKED_AT_EVERY = 25
TRAINING_ROWS = 10_000  # of those that are learned from, on curves
FIXED, ONE, BY_TENSOR, BY_WEIGHT = "fixed", "one", "one a tensor", "one a weight"
ENDS = ("gradient", "norm", "accuracy", "nll", "learned_accuracy", "learned_nll")  # the first is of the last fifth
SETTINGS_OPEN = (
    "as run: BatchNorm's factors and shifts, 160 numbers, have one σ of their own beside that of all weights",
    "as run, when sensitivities are taken and by which rows: anew in each generation, by its first minibatch; the "
    "author kept one batch for all generations, and by his sheet took them once, at the start",
)


@dataclass(frozen=True)
class AuthorsSearch:
    """How he searched: in pairs or not, with how many perturbations, and how fast which variances were adapted."""

    pairs: bool = True
    perturbations: int = 100
    per: str = "network"
    variance_rate: float = 0.0
    iterations: int = 3000

    def build_learner(self, population: int) -> Learner:
        return search.learner(
            UnitSpread(antithetic=self.pairs, first_scale=SCALE),
            size=population,
            scale=SCALE,
            per=self.per,
            scale_rate=self.variance_rate / RATE,
            gradient=search.plain,
            coordinate=search.log_variance,
            sensitivity="sum_by_tensor",
        )

    def size(self, options: ReplicationOptions) -> dict[str, int]:
        """Perturbations, rows of each, and iterations."""
        return {
            "population": int(options.by_size(self.perturbations // 2, self.perturbations)),
            "rows": int(options.by_size(8, 1000)),
            "iterations": int(options.by_size(3, self.iterations)),
        }


# By how many variances are adapted; the author's rates are of log σ².
ADAPTED = {
    FIXED: AuthorsSearch(),
    ONE: AuthorsSearch(variance_rate=2.0),
    BY_TENSOR: AuthorsSearch(per="tensor", variance_rate=4.0),
    BY_WEIGHT: AuthorsSearch(per="weight", variance_rate=4.0),
}


def seeds(options: ReplicationOptions) -> list[int]:
    return options.seed_list(1, 5)


def settings(options: ReplicationOptions) -> dict[str, Any]:
    """What all of them have in common."""
    return {
        "data": "MNIST",
        "net": "two convolutions, two dense layers, BatchNorm",
        "scale": SCALE,
        "rate": RATE,
        "momentum": MOMENTUM,
        "decay": DECAY,
        "rows of each perturbation": ADAPTED[FIXED].size(options)["rows"],
    }


def authors_net() -> nn.Module:
    """22,000 weights, started as he did; BatchNorm goes by its batch always, as his did where it was judged, too."""
    net = nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        *(nn.Conv2d(1, 10, 5), nn.BatchNorm2d(10, track_running_stats=False), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(10, 20, 5), nn.BatchNorm2d(20, track_running_stats=False), nn.MaxPool2d(2), nn.ReLU()),
        nn.Flatten(),
        *(nn.Linear(320, 50), nn.BatchNorm1d(50, track_running_stats=False), nn.ReLU()),
        *(nn.Linear(50, 10), nn.LogSoftmax(1)),
    )
    for module in net:
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.xavier_normal_(module.weight)
        if isinstance(module, nn.Conv2d) and module.bias is not None:
            nn.init.zeros_(module.bias)
    return net


def authors_sgd(tensors: Sequence[Tensor]) -> torch.optim.Optimizer:
    """Momentum for all; what moves the mean decays it, and what moves log σ² is dampened."""
    mean, *scale_steps = tensors
    groups: list[dict[str, Any]] = [{"params": [mean], "weight_decay": DECAY}]
    groups += [{"params": [step], "dampening": SCALE_DAMPENING} for step in scale_steps]
    return torch.optim.SGD(groups, lr=RATE, momentum=MOMENTUM)


class Minibatches(Sampler[Tensor]):
    """So many minibatches together, one for each perturbation: rows in shuffled order, none of them twice in one."""

    def __init__(self, rows: int, each: int, perturbations: int) -> None:
        self.rows, self.each, self.perturbations = rows, each, perturbations

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Tensor]:
        whole = self.rows // self.each  # minibatches of one shuffle
        shuffles = [torch.randperm(self.rows)[: whole * self.each] for _ in range(-(-self.perturbations // whole))]
        yield torch.cat(shuffles)[: self.perturbations * self.each]


def minibatch_loader(rows: Rows, each: int, perturbations: int) -> DataLoader[tuple[Tensor, ...]]:
    """One generation's rows, drawn afresh each time."""
    data = TensorDataset(*rows)
    return DataLoader(data, sampler=Minibatches(len(data), each, perturbations), batch_size=None)


def authors_search(options: ReplicationOptions, name: str, asked: AuthorsSearch, seed: int) -> dict[str, Any]:
    """What is followed of one search; kept as a part."""
    told = {
        **asdict(asked),
        **asked.size(options),
        **settings(options),
        "seed": seed,
        "device": options.device or "cpu",
    }
    part = f"search-as-run-{name.replace(' ', '-')}-{seed}"
    return cached_part(options, part, told, partial(_search, options, name, asked, seed))


def _search(options: ReplicationOptions, name: str, asked: AuthorsSearch, seed: int) -> dict[str, Any]:
    size, images = asked.size(options), load_images(options, "MNIST").to_device(options)
    options.say(f"as run, {name}: {size['iterations']:,} iterations, seed {seed}")
    judged = {"test": images.test, "learned": (images.train[0][:TRAINING_ROWS], images.train[1][:TRAINING_ROWS])}
    count, curve, scales = 0, list[list[float]](), list[dict[str, float]]()

    def watch(belief: Belief) -> Mapping[str, float]:
        nonlocal count
        count += 1
        if count % LOOKED_AT_EVERY == 0 or count == size["iterations"]:
            scores = [scores_of_one_batch(belief, rows) for rows in judged.values()]
            curve.append([count, *(value for each in scores for value in each.values())])
        scales.append(tensor_scales(belief))
        return {"norm": float(belief.posterior.mean.norm())}

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = authors_net()
    try:
        belief = doxa.fit(
            net,
            minibatch_loader(images.train, size["rows"], size["population"]),
            learner=asked.build_learner(size["population"]),
            likelihood=doxa.likelihoods.categorical(),
            epochs=size["iterations"],
            lr=RATE,
            optimiser=authors_sgd,
            seed=seed,
            size=len(images.train[1]),
            device=options.device,
            progress=options.progress,
            watch=watch,
        )
    except Diverged as error:  # he tells of searches that did
        options.say(f"as run, {name}, seed {seed}: {error}")
        return {"lasted": count, "curve": curve, "end": dict.fromkeys(ENDS)}
    return {"lasted": count, **summarised(belief.record.history, curve, scales)}


def summarised(
    history: Sequence[Mapping[str, Any]], curve: Sequence[Sequence[float]], scales: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    """Norms and scales at some generations, scores by generation, and where all of it ends."""
    gradient = np.array([row["gradient"] for row in history])
    last_count = max(1, round(LAST_SHARE * len(history)))
    indices = np.unique(np.linspace(0, len(history) - 1, CURVE_POINTS).round().astype(int))
    ends = [float(gradient[-last_count:].mean()), history[-1]["norm"], *curve[-1][1:]]
    return {
        "generation": [int(k) + 1 for k in indices],
        "norm": [round(history[k]["norm"], 4) for k in indices],
        "gradient": [round(float(v), 4) for v in moving_average(gradient)[indices]],
        "scales": {name: [float(f"{scales[k][name]:.5g}") for k in indices] for name in scales[0]},
        "curve": [list(row) for row in curve],  # generation; accuracy % and NLL of test rows, and of rows learned from
        "end": dict(zip(ENDS, ends, strict=True)),
    }


@torch.no_grad()
def scores_of_one_batch(belief: Belief, rows: Rows) -> dict[str, float]:
    """Accuracy in per cent and NLL of the net in the middle, all rows as one batch, by whose statistics it goes."""
    log_probabilities = call(belief.net, belief.layout.weights(belief.posterior.mean), {}, rows[0])
    return {
        "accuracy": 100 * float((log_probabilities.argmax(1) == rows[1]).double().mean()),
        "nll": float(nll(log_probabilities.softmax(1), rows[1])),
    }


def tensor_scales(belief: Belief) -> dict[str, float]:
    """σ of every random tensor: the root mean square of its weights', which sensitivities leave as it is."""
    squares = belief.posterior.scale.square()
    return {slot.name: float(squares[slot.span].mean().sqrt()) for slot in belief.layout.random_slots}


def mean_of_lasting(records: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """The mean over the searches that lasted, point by point; nothing where none did."""
    lasting = [record[key] for record in records if key in record]
    return np.mean(lasting, 0).tolist() if lasting else []


def mean_scales(records: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The same of every tensor's σ."""
    lasting = [record["scales"] for record in records if "scales" in record]
    return {name: np.mean([scales[name] for scales in lasting], 0).tolist() for name in (lasting[0] if lasting else ())}


def ends_of(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What all seeds come to: each, and the mean with its error over those that lasted."""
    each = {key: [record["end"][key] for record in records] for key in ENDS}
    return {
        key: {"each": values, **summary([v for v in values if v is not None] or [None])} for key, values in each.items()
    }


def of_name(options: ReplicationOptions, name: str) -> dict[str, Any]:
    """All seeds of one of the four ways to treat variances."""
    records = [authors_search(options, name, ADAPTED[name], seed) for seed in seeds(options)]
    return column_of(records)


def column_of(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is kept of the seeds of a search."""
    return {
        "lasted": [record["lasted"] for record in records],
        "generation": next((record["generation"] for record in records if "generation" in record), []),
        **{key: mean_of_lasting(records, key) for key in ("norm", "gradient")},
        "scales": mean_scales(records),
        "curve": mean_of_lasting([r for r in records if "scales" in r], "curve"),
        "end": ends_of(records),
    }


def format_end(end: Mapping[str, Any], places: int) -> str:
    return "∞" if not math.isfinite(end["mean"] or math.inf) else format_with_error(end, places)
