"""The standard regression benchmark: variational, dropout and ensemble on seven sets and their published splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import standard_error
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.uci_regression import methods
from doxa_replicate.weight_uncertainty.uci_regression.contest import (
    CHOOSING_DRAWS,
    TESTING_DRAWS,
    WIDENINGS,
    BenchmarkSize,
    SplitBenchmark,
    evaluate_method,
)
from doxa_replicate.weight_uncertainty.uci_regression.published import (
    SETS,
    SOURCES,
    best_variational,
)
from doxa_replicate.weight_uncertainty.uci_regression.splits import FEW_ROWS, FOLDS, standardised_splits
from doxa_replicate.weight_uncertainty.uci_regression.tables import show

SIZES = {
    "bostonHousing": BenchmarkSize(width=50, batch=32, epochs=200),
    "concrete": BenchmarkSize(width=50, batch=32, epochs=200),
    "kin8nm": BenchmarkSize(width=50, batch=256, epochs=400),
    "naval-propulsion-plant": BenchmarkSize(width=50, batch=256, epochs=400),
    "power-plant": BenchmarkSize(width=50, batch=256, epochs=200),
    "protein-tertiary-structure": BenchmarkSize(width=100, batch=512, epochs=150),
    "wine-quality-red": BenchmarkSize(width=50, batch=64, epochs=100),
}
QUICK_SIZES = {"bostonHousing": BenchmarkSize(width=50, batch=64, epochs=15)}
SPLIT_COUNTS = {"protein-tertiary-structure": 5}  # of the others there are 20
ENOUGH_SETS = 5

REACHES_PUBLISHED = Claim(
    "UCI-1",
    "Our variational log-likelihood reaches the best of Wu et al. (2019) on most of the sets",
    f"mean over splits ≥ best of Wu et al. (2019) − our standard error, on at least {ENOUGH_SETS} of the {len(SETS)} "
    "sets",
)


def run(options: ReplicationOptions) -> Numbers:
    sizes = SIZES if options.full else QUICK_SIZES
    split_numbers = options.seed_list(2, 20)
    sets = {}
    for name, size in sizes.items():
        numbers = [n for n in split_numbers if n < SPLIT_COUNTS.get(name, 20)]
        sets[name] = {
            method: summarise_splits(method_scores(options, name, method, size, numbers)) for method in methods.METHODS
        }
    reached = {
        name: reaches_published(name, by_method["variational"]["log_likelihood"]) for name, by_method in sets.items()
    }
    count = sum(reached.values())
    setting = "one hidden layer, settings chosen inside each training split"
    return {
        "settings": common_settings(options.full) | {"sizes": {name: vars(size) for name, size in sizes.items()}},
        "seeds": split_numbers,
        "sets": sets,
        "reached": reached,
        "verdicts": [
            REACHES_PUBLISHED.judge(count >= ENOUGH_SETS if options.full else None, count, None, split_numbers, setting)
        ],
    }


def common_settings(full: bool) -> dict[str, Any]:
    """What all parts have in common."""
    return {
        "rate": methods.LEARNING_RATE,
        "start": methods.START_SCALE,
        "members": methods.ENSEMBLE_MEMBERS,
        "widenings": WIDENINGS,
        "draws": {"choosing": CHOOSING_DRAWS, "testing": TESTING_DRAWS},
        "set aside": {"share": 1 / FOLDS, "in turn, all of them, below": FEW_ROWS},
        "candidates": {
            method: [str(candidate) for candidate in candidates(methods.one_hidden_layer(1, 1), full)]
            for method, candidates in methods.METHODS.items()
        },
    }


def method_scores(
    options: ReplicationOptions, name: str, method: str, size: BenchmarkSize, numbers: Sequence[int]
) -> dict[str, Any]:
    """A method's scores on each split of a set, kept."""
    common = common_settings(options.full)
    common["candidates"] = common["candidates"][method]
    settings = {"set": name, "method": method, "splits": list(numbers), **vars(size), **common}

    def make() -> dict[str, Any]:
        scores = evaluate_method(
            method,
            SplitBenchmark(standardised_splits(name, numbers), size, options.device, options.progress),
            options.full,
        )
        options.say(f"{name}, {method}: log-likelihood {np.mean(scores['log_likelihood']):.3f}")
        return scores

    return cached_part(options, f"{name}-{method}", settings, make)


def summarise_splits(rows: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Means over splits with their standard errors, each split's own, and how often each setting was chosen."""
    summary: dict[str, Any] = {
        key: {"mean": float(np.mean(rows[key])), "se": standard_error(rows[key]), "each": list(rows[key])}
        for key in ("log_likelihood", "rmse", "aside", "widening")
    }
    return summary | {"chosen": dict(Counter(rows["setting"]).most_common())}


def reaches_published(name: str, log_likelihood: Mapping[str, Any]) -> bool:
    """Whether a mean log-likelihood is the best of Wu et al. (2019), or within our standard error of it."""
    return bool(log_likelihood["mean"] >= best_variational(name) - (log_likelihood["se"] or 0.0))


ARTEFACT = Artefact(
    name="weight-uncertainty/uci-regression",
    order=35,
    title="The standard regression benchmark, beside published log-likelihoods and errors",
    requirements=("G-10", "G-14"),
    run=run,
    claims=(REACHES_PUBLISHED,),
    reference={
        "note": "published figures stand in the tables below, from "
        + "; ".join(f"{method}: {source}" for method, source in SOURCES.items())
    },
    left_open=(
        "which rows choose the settings: a fifth of the training split, or all of them in turn where there are fewer "
        f"than {FEW_ROWS:,}; then all training rows are learned from",
        "what is chosen there: KL weight or dropout rate, how the noise enters, how long to learn, whether the net "
        "tells the noise of each input, and by which factor that noise is widened",
        "what is not chosen: ReLU, a prior N(0, 1/fan-in), Adam at 0.01 falling along a cosine, batches and epochs of "
        "each set; with dropout and in an ensemble the net always tells the noise of each input",
        "targets on a grid, such as the marks of wine: a Gaussian density all the same, as published, and no noise "
        "below that of rounding, step/√12, so that no density bets on the grid",
    ),
    departures={"quick": ("one small set, two of its splits, fewer settings and epochs: it decides no claim",)},
    durations=("some seconds", "seven minutes on a GPU"),
    group="uci",
    show=show,
)
