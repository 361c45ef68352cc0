"""The grid of scale mixtures: every one trained, and scored on the rows to choose by."""

from __future__ import annotations

from itertools import product
from typing import Any

import doxa
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.digits.trainings.cells import class_probabilities, scores
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AS_WRITTEN,
    BATCH,
    MEAN_START,
    RHO_START,
    DigitModel,
    build_learner,
    draw_count,
    learning_rate,
    mixture_prior,
    recipe_at_size,
    start_net,
    width_at_size,
)
from doxa_replicate.weight_uncertainty.digits.trainings.rows import load_digits

SHARES, WIDE, NARROW = (0.25, 0.5, 0.75), (0, 1, 2), (6, 7, 8)
WIDTH, SEED = 400, 100


def best_mixture(options: ReplicationOptions) -> tuple[float, int, int]:
    """Share, −log σ₁ and −log σ₂ of the mixture with the lowest validation NLL."""
    scores_by_mixture = grid_scores(options)
    share, wide, narrow = min(scores_by_mixture, key=lambda key: scores_by_mixture[key]["nll"]).split(", ")
    return float(share), int(wide), int(narrow)


def grid_scores(options: ReplicationOptions) -> dict[str, Any]:
    """The validation scores of every mixture, by its share and scales."""
    return {key: scored for share in SHARES for key, scored in scores_with_share(options, share).items()}


def scores_with_share(options: ReplicationOptions, share: float) -> dict[str, Any]:
    """The third of the grid with one share of the wide component: a part of its own, for the grid takes minutes."""
    recipe = recipe_at_size(options, AS_WRITTEN)
    settings = {
        "recipe": recipe.as_dict(),
        "width": width_at_size(options, WIDTH),
        "seed": SEED,
        "device": options.device or "cpu",
    }
    settings |= {
        "grid": [[share], WIDE, NARROW],
        "draws": draw_count(options),
        "batch": BATCH,
        "start": [MEAN_START, RHO_START],
    }
    scores_by_mixture: dict[str, Any] = cached_part(
        options, f"mnist-mixture-grid-{share:g}", settings, lambda: _train_mixtures(options, share)
    )["tried"]
    return scores_by_mixture


def _train_mixtures(options: ReplicationOptions, share: float) -> dict[str, Any]:
    grid = list(product(WIDE, NARROW))
    options.say(f"MNIST, {len(grid)} scale mixtures with π = {share:g}, {WIDTH} units")
    models = [DigitModel("mixture", "", mixture_prior(share, *scales)) for scales in grid]
    recipe, data = recipe_at_size(options, AS_WRITTEN), load_digits(options)
    beliefs = doxa.fleet(
        start_net(options, WIDTH, SEED),
        data.learn,
        learners=[build_learner(model, recipe) for model in models],
        likelihood=doxa.likelihoods.categorical(),
        seeds=SEED,
        lr=learning_rate(recipe),
        epochs=recipe.epochs,
        batch_size=BATCH,
        device=options.device,
        progress=options.progress,
    )
    x, y = data.choose
    return {
        "tried": {
            f"{share:g}, {wide}, {narrow}": scores(class_probabilities(True, belief, x, draw_count(options)), y)
            for (wide, narrow), belief in zip(grid, beliefs, strict=True)
        }
    }
