"""The chosen column: for each net the recipe whose validation NLL is lowest, found before a test row is looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.digits.trainings.cells import cells, cells_as_run
from doxa_replicate.weight_uncertainty.digits.trainings.fleets import train_fleet
from doxa_replicate.weight_uncertainty.digits.trainings.judging import Cell, class_probabilities, scores
from doxa_replicate.weight_uncertainty.digits.trainings.mixtures import best_mixture
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    BATCH,
    CHOSEN_PART,
    MODELS,
    WIDTHS,
    DigitModel,
    TrainingRecipe,
    build_learner,
    draw_count,
    learning_rate,
    mixture_prior,
    recipe_at_size,
    start_net,
    width_at_size,
)
from doxa_replicate.weight_uncertainty.digits.trainings.rows import load_digits
from doxa_replicate.weight_uncertainty.matmul import training_matmul

CHOICE_SEED = 100  # of the nets that are chosen by, none that is reported
KL_WEIGHTS, SCALES, BELIEF_EPOCHS = (1.0, 0.3, 0.1, 0.03, 0.01), (0.01, 0.03, 0.06), (100,)
HALVING_RATES, HALVING_EPOCHS, HALVING_KL_WEIGHTS = (5e-4, 1e-3, 2e-3), (50, 100, 200), (1.0, 10.0)
POINT_EPOCHS = {"plain": (1, 2, 5, 20, 100), "dropout": (5, 10, 20, 50, 100, 200)}


def candidate_recipes(options: ReplicationOptions, name: str, width: int) -> list[TrainingRecipe]:
    """What is tried: two splits of the KL for beliefs, each with knobs of its own; when to stop for point estimates.

    With even shares and local noise: the KL's weight, the scale at the start and the length. With halving shares: the
    rate and the length, by which the scales grow, the KL's weight, which decays the means, and the noise. Start and
    length with even shares are chosen with the narrowest nets, and taken over by the others.
    """
    if name in POINT_EPOCHS:
        return [TrainingRecipe(epochs, 1e-3, cosine=True) for epochs in POINT_EPOCHS[name]]
    return [*_even_recipes(options, name, width), *_halving_recipes()]


def _even_recipes(options: ReplicationOptions, name: str, width: int) -> list[TrainingRecipe]:
    pairs = list(product(BELIEF_EPOCHS, SCALES))
    if width > WIDTHS[0]:
        choice = choose_recipe(options, name, WIDTHS[0])
        best = min((row for row in choice["tried"] if not row["geometric"]), key=validation_nll)
        pairs = [(best["epochs"], best["scale"])]
    return [
        TrainingRecipe(epochs, 1e-3, cosine=True, samples=1, local=True, kl_weight=weight, scale=scale)
        for weight in KL_WEIGHTS
        for epochs, scale in pairs
    ]


def _halving_recipes() -> list[TrainingRecipe]:
    """With local noise all; with two shared draws the middle one. The KL's weight is a decay of the means here."""
    shared = TrainingRecipe(HALVING_EPOCHS[1], HALVING_RATES[1], cosine=True, geometric=True)
    local = [
        TrainingRecipe(epochs, lr, cosine=True, samples=1, local=True, kl_weight=kl_weight, geometric=True)
        for epochs in HALVING_EPOCHS
        for lr in HALVING_RATES
        for kl_weight in HALVING_KL_WEIGHTS
    ]
    return [*local, *(replace(shared, kl_weight=kl_weight) for kl_weight in HALVING_KL_WEIGHTS)]


def knobs_at_edge(choice: Mapping[str, Any]) -> list[str]:
    """The knobs whose chosen value is the least or the greatest of those tried with the same split of the KL."""
    best = choice["tried"][choice["best"]]
    family = [row for row in choice["tried"] if row.get("geometric") == best.get("geometric")]
    at_edge = []
    for knob in ("epochs", "lr", "kl_weight", "scale"):
        values = {row[knob] for row in family if row[knob] is not None}
        if len(values) > 1 and best[knob] in (min(values), max(values)):
            at_edge.append(knob)
    return at_edge


def chosen_model(options: ReplicationOptions, name: str) -> DigitModel:
    """The model as it is chosen: the mixture is the best one of its grid."""
    if name != "mixture":
        return MODELS[name]
    return replace(MODELS[name], prior=mixture_prior(*best_mixture(options)))


def choose_recipe(options: ReplicationOptions, name: str, width: int) -> dict[str, Any]:
    """All that was tried, with its validation scores, and which was best."""
    recipes, model = (
        [recipe_at_size(options, recipe) for recipe in candidate_recipes(options, name, width)],
        chosen_model(options, name),
    )
    settings = {
        "model": [name, model.prior, model.dropout_rate],
        "width": width_at_size(options, width),
        "recipes": [recipe.key() for recipe in recipes],
        "batch": BATCH,
        "draws": draw_count(options),
        "seed": CHOICE_SEED,
        "device": options.device or "cpu",
        "matmul": training_matmul(options),
    }
    trial: dict[str, Any] = cached_part(
        options,
        f"mnist-choice-{name}-{width}",
        settings,
        lambda: {"tried": _try_recipes(options, model, width, recipes)},
    )
    best = min(range(len(recipes)), key=lambda k: validation_nll(trial["tried"][k]))
    return {
        "tried": [
            recipe.as_dict() | recipe_scores for recipe, recipe_scores in zip(recipes, trial["tried"], strict=True)
        ],
        "best": best,
    }


def validation_nll(row: Mapping[str, Any]) -> float:
    """That of something tried; infinite where a right answer had the probability 0, which what is kept calls None."""
    return math.inf if row["nll"] is None else float(row["nll"])


def _try_recipes(
    options: ReplicationOptions, model: DigitModel, width: int, recipes: Sequence[TrainingRecipe]
) -> list[dict[str, float]]:
    options.say(f"MNIST, {model.title}, {width} units: choosing among {len(recipes)}")
    data = load_digits(options)
    scores_by_recipe: dict[int, dict[str, float]] = {}
    for epochs in sorted({recipe.epochs for recipe in recipes}):
        indices = [k for k, recipe in enumerate(recipes) if recipe.epochs == epochs]
        beliefs = train_fleet(
            options,
            start_net(options, width, CHOICE_SEED),
            data.learn,
            learners=[build_learner(model, recipes[k]) for k in indices],
            seeds=CHOICE_SEED,
            lr=[learning_rate(recipes[k]) for k in indices],
            epochs=epochs,
        )
        for k, belief in zip(indices, beliefs, strict=True):
            scores_by_recipe[k] = scores(
                class_probabilities(model.is_belief, belief, data.choose[0], draw_count(options)), data.choose[1]
            )
    return [scores_by_recipe[k] for k in range(len(recipes))]


def chosen_cells(options: ReplicationOptions, name: str, width: int) -> list[Cell]:
    """The cells of a model at a width, by the recipe that was chosen, learned from all training rows."""
    best = choose_recipe(options, name, width)["best"]
    return cells(
        options, name, width, candidate_recipes(options, name, width)[best], CHOSEN_PART, chosen_model(options, name)
    )


def cells_by_column(
    options: ReplicationOptions, names: Sequence[str], width: int = WIDTHS[-1]
) -> dict[str, dict[str, list[Cell]]]:
    """The cells of some models in all columns."""
    return {
        AS_RUN: {name: cells_as_run(options, name, width) for name in names},
        AS_WRITTEN: {name: cells(options, name, width) for name in names},
        CHOSEN: {name: chosen_cells(options, name, width) for name in names},
    }
