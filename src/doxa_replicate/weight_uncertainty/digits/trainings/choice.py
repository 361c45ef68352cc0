"""The chosen column: for each net the recipe whose validation NLL is lowest, found before a test row is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import doxa
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.digits.trainings.cells import Cell, cells, class_probabilities, scores
from doxa_replicate.weight_uncertainty.digits.trainings.mixtures import best_mixture
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    BATCH,
    CHOSEN_COLUMN,
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

CHOICE_SEED = 100  # of the nets that are chosen by, none that is reported
KL_WEIGHTS, SCALES = (1.0, 0.3, 0.1, 0.03), (0.01, 0.03)
EPOCHS = {"believes": (30, 100), "plain": (5, 20, 100), "dropout": (50, 100, 200)}


def candidate_recipes(options: ReplicationOptions, name: str, width: int) -> list[TrainingRecipe]:
    """What is tried: KL weight, start and length for beliefs, with local noise; when to stop for point estimates.

    Start and length are chosen with the narrowest nets, and taken over by the others.
    """
    model = MODELS[name]
    if not model.is_belief:
        return [
            TrainingRecipe(epochs, 1e-3, cosine=True) for epochs in EPOCHS["dropout" if model.dropout_rate else "plain"]
        ]
    pairs = [(epochs, scale) for epochs in EPOCHS["believes"] for scale in SCALES]
    if width > WIDTHS[0]:
        best = candidate_recipes(options, name, WIDTHS[0])[choose_recipe(options, name, WIDTHS[0])["best"]]
        pairs = [(best.epochs, best.scale)]
    return [
        TrainingRecipe(epochs, 1e-3, cosine=True, samples=1, local=True, kl_weight=weight, scale=scale)
        for weight in KL_WEIGHTS
        for epochs, scale in pairs
    ]


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
        "recipes": [recipe.as_dict() for recipe in recipes],
        "batch": BATCH,
        "draws": draw_count(options),
        "seed": CHOICE_SEED,
        "device": options.device or "cpu",
    }
    trial: dict[str, Any] = cached_part(
        options,
        f"mnist-choice-{name}-{width}",
        settings,
        lambda: {"tried": _try_recipes(options, model, width, recipes)},
    )
    best = min(range(len(recipes)), key=lambda k: trial["tried"][k]["nll"])
    return {
        "tried": [
            recipe.as_dict() | recipe_scores for recipe, recipe_scores in zip(recipes, trial["tried"], strict=True)
        ],
        "best": best,
    }


def _try_recipes(
    options: ReplicationOptions, model: DigitModel, width: int, recipes: Sequence[TrainingRecipe]
) -> list[dict[str, float]]:
    options.say(f"MNIST, {model.title}, {width} units: choosing among {len(recipes)}")
    data = load_digits(options)
    scores_by_recipe: dict[int, dict[str, float]] = {}
    for epochs in sorted({recipe.epochs for recipe in recipes}):
        indices = [k for k, recipe in enumerate(recipes) if recipe.epochs == epochs]
        beliefs = doxa.fleet(
            start_net(options, width, CHOICE_SEED),
            data.learn,
            learners=[build_learner(model, recipes[k]) for k in indices],
            likelihood=doxa.likelihoods.categorical(),
            seeds=CHOICE_SEED,
            lr=[learning_rate(recipes[k]) for k in indices],
            epochs=epochs,
            batch_size=BATCH,
            device=options.device,
            progress=options.progress,
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
        options, name, width, candidate_recipes(options, name, width)[best], CHOSEN_COLUMN, chosen_model(options, name)
    )


def cells_by_column(
    options: ReplicationOptions, names: Sequence[str], width: int = WIDTHS[-1]
) -> dict[str, dict[str, list[Cell]]]:
    """The cells of some models in both columns."""
    return {
        "as written": {name: cells(options, name, width) for name in names},
        "chosen": {name: chosen_cells(options, name, width) for name in names},
    }
