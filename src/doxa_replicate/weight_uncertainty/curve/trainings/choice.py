"""The recipe of each column: as its authors ran it, at the rate of the lowest free energy, or by fresh points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch

import doxa
from doxa.data.sets.curve import curve
from doxa.errors import Diverged
from doxa.predict.belief import Belief
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.curve.measures import tail_length
from doxa_replicate.weight_uncertainty.curve.trainings.fleets import free_energies, train_beliefs
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    HALVED_TWICE,
    NOISE,
    RECIPE_AS_RUN,
    CurveRecipe,
    CurveSetting,
    curve_size,
)
from doxa_replicate.weight_uncertainty.matmul import training_matmul

LEARNING_RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
CHOICE_SEEDS = (100, 101)  # of curves to choose by, no member's own
FRESH_POINTS = 1000  # of each, amid the data


def column_recipe(options: ReplicationOptions, column: str) -> CurveRecipe:
    """How a column trains its beliefs."""
    if column == AS_RUN:
        return RECIPE_AS_RUN
    tried = tried_recipes(options)
    best = {
        AS_WRITTEN: _least([t for t in tried if not t["geometric"]], "free_energy"),
        CHOSEN: _least(tried, "nll"),
    }[column]
    return replace(HALVED_TWICE, rate=best["rate"], geometric=best["geometric"])


def _least(tried: Sequence[Mapping[str, Any]], key: str) -> Mapping[str, Any]:
    """What ends lowest; a number that is not finite, which what is kept can only call None, is no number at all."""
    return min((t for t in tried if t[key] is not None), key=lambda t: float(t[key]))


def at_edge(options: ReplicationOptions) -> dict[str, bool]:
    """Whether a column's rate is the lowest or the highest of those that were tried."""
    ends = min(LEARNING_RATES), max(LEARNING_RATES)
    return {column: column_recipe(options, column).rate in ends for column in (AS_WRITTEN, CHOSEN)}


def tried_recipes(options: ReplicationOptions) -> list[dict[str, Any]]:
    """Rates and splits of the KL, with the free energy that a belief ends at and its NLL of fresh points."""
    size = curve_size(options)
    settings = {
        "rates": LEARNING_RATES,
        "width": size.width,
        "epochs": size.epochs,
        "samples": size.samples,
        "draws": size.functions,
        "seeds": CHOICE_SEEDS,
        "fresh_points": FRESH_POINTS,
        "matmul": training_matmul(options),
        "device": options.device or "cpu",
    }
    tried: list[dict[str, Any]] = cached_part(
        options, "regression-choice", settings, lambda: {"tried": _try_recipes(options)}
    )["tried"]
    return tried


def _try_recipes(options: ReplicationOptions) -> list[dict[str, Any]]:
    options.say("regression: which learning rate, and which split of the KL")
    recipes = [
        replace(HALVED_TWICE, rate=rate, geometric=geometric)
        for rate, geometric in product(LEARNING_RATES, (False, True))
    ]
    learners = {split: CurveSetting().build_learner(curve_size(options).samples, _split(split)) for split in (0, 1)}
    pairs = [(recipe, seed) for recipe in recipes for seed in CHOICE_SEEDS]
    try:
        beliefs: Sequence[Belief | None] = train_beliefs(
            options,
            HALVED_TWICE,
            [learners[recipe.geometric] for recipe, _ in pairs],
            [seed for _, seed in pairs],
            doxa.likelihoods.gaussian(NOISE),
            lr=[recipe.schedule(options) for recipe, _ in pairs],
        )
    except Diverged as error:
        beliefs = error.beliefs
    scores = [_scores(options, belief, seed) for (_, seed), belief in zip(pairs, beliefs, strict=True)]
    count = len(CHOICE_SEEDS)
    return [
        {"rate": recipe.rate, "geometric": recipe.geometric}
        | {name: float(np.mean([s[name] for s in scores[k * count : (k + 1) * count]])) for name in scores[0]}
        for k, recipe in enumerate(recipes)
    ]


def _split(geometric: int) -> CurveRecipe:
    return replace(HALVED_TWICE, geometric=bool(geometric))


def _scores(options: ReplicationOptions, belief: Belief | None, seed: int) -> dict[str, float]:
    """The free energy at the end, and the NLL of points of the same curve that were not learned."""
    if belief is None:
        return {"free_energy": math.inf, "nll": math.inf}
    energy, fresh = free_energies(belief), curve(seed + len(CHOICE_SEEDS), FRESH_POINTS)
    prediction = belief.predict(fresh.x_train, curve_size(options).functions)
    y = torch.as_tensor(fresh.y_train).to(belief.posterior.mean)
    return {
        "free_energy": float(np.mean(energy[-tail_length(energy) :])),
        "nll": -float(prediction.log_predictive(y).mean()),
    }
