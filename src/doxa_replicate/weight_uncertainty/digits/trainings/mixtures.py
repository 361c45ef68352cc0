"""Grids of scale mixtures: the document's, the authors' own, and the one that is chosen from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.digits.trainings.cells import cells_as_run
from doxa_replicate.weight_uncertainty.digits.trainings.fleets import train_fleet
from doxa_replicate.weight_uncertainty.digits.trainings.judging import (
    Cell,
    authors_draws,
    class_probabilities,
    judge_briefly,
    scores,
)
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AS_RUN,
    AS_WRITTEN,
    BATCH,
    BEST_MIXTURE,
    HALF_OF_EPOCHS,
    MEAN_START,
    MINIBATCHES,
    RHO_START,
    DigitModel,
    TrainingRecipe,
    build_learner,
    draw_count,
    learning_rate,
    mixture_prior,
    recipe_at_size,
    seeds_of,
    start_net,
    width_at_size,
)
from doxa_replicate.weight_uncertainty.digits.trainings.rows import load_digits
from doxa_replicate.weight_uncertainty.last_minibatch import LowestLoss
from doxa_replicate.weight_uncertainty.matmul import training_matmul

# The document's grid: share of the wide Gaussian, −log σ₁ and −log σ₂.
DOCUMENT_GRID = tuple(product((0.25, 0.5, 0.75), (0, 1, 2), (6, 7, 8)))
# The grid that is chosen from, around the mixtures that did best: the narrow part is always the narrower one.
CHOSEN_GRID = tuple(
    (share, wide, narrow)
    for share, wide, narrow in product((0.125, 0.25, 0.5, 0.75, 0.875), (-1, 0, 1, 2), range(1, 9))
    if narrow > wide
)
CHOSEN_RECIPE = TrainingRecipe(100, 1e-3, cosine=True, geometric=True)
WIDTH, SEED = 400, 100
# What the authors tried.
AUTHORS_MIXTURES = (
    *((share, 0.0, 6.0) for share in (0.25, 0.5, 0.75)),
    *((0.5, wide, narrow) for wide, narrow in ((0.0, 7.0), (0.0, 8.0), (1.0, 6.0), (2.0, 6.0))),
    (0.5, 0.0, -math.log(0.2)),
)
TRAINED_MIXTURES = tuple(mixture for mixture in AUTHORS_MIXTURES if mixture != BEST_MIXTURE)
GRID_SEEDS = 3  # of each of them at each width: no claim rests on these
Mixture = tuple[float, float, float]


def best_mixture(options: ReplicationOptions) -> Mixture:
    """Share, −log σ₁ and −log σ₂ of the mixture with the lowest validation NLL."""
    scores_by_mixture = chosen_grid_scores(options)
    best = min(scores_by_mixture, key=lambda key: scores_by_mixture[key]["nll"])
    share, wide, narrow = (float(value) for value in best.split(", "))
    return share, wide, narrow


def mixture_name(mixture: Mixture) -> str:
    return ", ".join(f"{value:.4g}" for value in mixture)


def written_grid_scores(options: ReplicationOptions) -> dict[str, Any]:
    """The validation scores of the document's mixtures, with even shares of the KL."""
    scores_by_mixture: dict[str, Any] = {}
    for share in sorted({mixture[0] for mixture in DOCUMENT_GRID}):  # parts of their own, for each takes minutes
        grid = [mixture for mixture in DOCUMENT_GRID if mixture[0] == share]
        scores_by_mixture |= _grid_part(options, f"mnist-mixture-grid-{share:g}", grid, AS_WRITTEN)
    return scores_by_mixture


def chosen_grid_scores(options: ReplicationOptions) -> dict[str, Any]:
    """The validation scores of the mixtures that are chosen from, with halving shares of the KL."""
    return _grid_part(options, "mnist-mixture-choice", chosen_grid(options), CHOSEN_RECIPE)


def chosen_grid(options: ReplicationOptions) -> list[Mixture]:
    return list(options.by_size(CHOSEN_GRID[::12], CHOSEN_GRID))


def values_at_edge(options: ReplicationOptions) -> list[str]:
    """Which of the best mixture's values are the least or the greatest that were tried."""
    mixture = best_mixture(options)
    ends = [(min(column), max(column)) for column in zip(*chosen_grid(options), strict=True)]
    names = ("π", "−log σ₁", "−log σ₂")
    return [name for name, value, end in zip(names, mixture, ends, strict=True) if value in end]


def _grid_part(
    options: ReplicationOptions, part: str, grid: Sequence[Mixture], recipe: TrainingRecipe
) -> dict[str, Any]:
    sized_recipe = recipe_at_size(options, recipe)
    settings = {
        "recipe": sized_recipe.key(),
        "width": width_at_size(options, WIDTH),
        "seed": SEED,
        "device": options.device or "cpu",
        "matmul": training_matmul(options),
        "grid": list(grid),
        "draws": draw_count(options),
        "batch": BATCH,
        "start": [MEAN_START, RHO_START],
    }
    scores_by_mixture: dict[str, Any] = cached_part(
        options, part, settings, lambda: _train_grid(options, grid, sized_recipe)
    )["tried"]
    return scores_by_mixture


def _train_grid(options: ReplicationOptions, grid: Sequence[Mixture], recipe: TrainingRecipe) -> dict[str, Any]:
    options.say(f"MNIST, {len(grid)} scale mixtures, {WIDTH} units, {recipe.epochs} epochs")
    models = [DigitModel("mixture", "", mixture_prior(*mixture)) for mixture in grid]
    data = load_digits(options)
    beliefs = train_fleet(
        options,
        start_net(options, WIDTH, SEED),
        data.learn,
        learners=[build_learner(model, recipe) for model in models],
        seeds=SEED,
        lr=learning_rate(recipe),
        epochs=recipe.epochs,
    )
    x, y = data.choose
    return {
        "tried": {
            mixture_name(mixture): scores(class_probabilities(True, belief, x, draw_count(options)), y)
            for mixture, belief in zip(grid, beliefs, strict=True)
        }
    }


def mixtures_as_run(options: ReplicationOptions, width: int) -> dict[str, list[Cell]]:
    """The authors' own grid at a width: half of the epochs, test rows; at the end, and as they stored the nets.

    A seed is a part. The mixture of table 3 is one of them half-way through its training, and not trained anew.
    """
    cells_by_mixture: dict[str, list[Cell]] = {mixture_name(mixture): [] for mixture in AUTHORS_MIXTURES}
    table_cells = {cell["seed"]: cell for cell in cells_as_run(options, "mixture", width)}
    for seed in seeds_of(options)[:GRID_SEEDS]:
        trained = _grid_as_run(options, width, seed)
        trained[mixture_name(BEST_MIXTURE)] = {
            state: _brief_scores(table_cells[seed][cell]) for state, cell in (("last", "halfway"), ("stored", "stored"))
        }
        for name, of_mixture in cells_by_mixture.items():
            of_mixture.append({"seed": seed, **trained[name]})
    return cells_by_mixture


def _grid_as_run(options: ReplicationOptions, width: int, seed: int) -> dict[str, Cell]:
    recipe = recipe_at_size(options, replace(AS_RUN, epochs=HALF_OF_EPOCHS))
    settings = {
        "recipe": recipe.key(),
        "width": width_at_size(options, width),
        "seed": seed,
        "grid": TRAINED_MIXTURES,
        "draws": [draw_count(options), authors_draws(options)],
        "batch": BATCH,
        "start": [MEAN_START, RHO_START],
        "device": options.device or "cpu",
        "matmul": training_matmul(options),
    }
    part = f"mnist-mixtures-as-run-{width}"
    # A new record of each: what is added to it is not to be kept.
    return dict(cached_part(options, part, settings, lambda: _train_as_run(options, width, recipe, seed)))


def _train_as_run(options: ReplicationOptions, width: int, recipe: TrainingRecipe, seed: int) -> dict[str, Cell]:
    options.say(f"MNIST, {len(TRAINED_MIXTURES)} scale mixtures as run, {width} units: seed {seed}")
    models = [DigitModel("mixture", "", mixture_prior(*mixture)) for mixture in TRAINED_MIXTURES]
    keeper = LowestLoss(BATCH, MINIBATCHES)
    beliefs = train_fleet(
        options,
        start_net(options, width, seed),
        load_digits(options).train,
        learners=[build_learner(model, recipe) for model in models],
        seeds=seed,
        lr=learning_rate(recipe),
        epochs=recipe.epochs,
        watch=keeper,
    )

    def judge(model: DigitModel, belief: Belief) -> Cell:
        return _brief_scores(judge_briefly(options, model, belief, with_pruning=False))

    return {
        mixture_name(mixture): {"last": judge(model, belief), "stored": judge(model, keeper.kept(belief))}
        for mixture, model, belief in zip(TRAINED_MIXTURES, models, beliefs, strict=True)
    }


def _brief_scores(cell: Cell) -> Cell:
    return {"epoch": cell["epoch"], **cell["test"], "error_as_run": cell["error_as_run"]}
