"""The grid of scale mixtures, chosen on validation rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import doxa
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.cells import class_probabilities, scores
from doxa_replicate.weight_uncertainty.digits.models import (
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
from doxa_replicate.weight_uncertainty.digits.rows import load_digits

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


def run(options: ReplicationOptions) -> Numbers:
    scores_by_mixture = grid_scores(options)
    best = min(scores_by_mixture, key=lambda key: scores_by_mixture[key]["nll"])
    return {
        "settings": {
            "units": WIDTH,
            "recipe": recipe_at_size(options, AS_WRITTEN).as_dict(),
            "chosen_by": "validation NLL",
        },
        "seeds": [SEED],
        "tried": scores_by_mixture,
        "best": best,
        "lowest_error": min(scores_by_mixture, key=lambda key: scores_by_mixture[key]["error"]),
    }


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


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    scores_by_mixture, best = result["numbers"]["tried"], result["numbers"]["best"]
    rows = []
    for key, mixture_scores in scores_by_mixture.items():
        mark = "**" * (key == best)
        rows.append(
            [
                f"{mark}{key}{mark}",
                f"{mixture_scores['nll']:.4f}",
                f"{mixture_scores['error']:.2f}",
                f"{mixture_scores['ece']:.2f}",
            ]
        )
    caption = f"Lowest NLL: {best}; lowest error: {result['numbers']['lowest_error']}."
    return [ResultTable("Validation rows", ("π, −log σ₁, −log σ₂", "NLL", "error %", "ECE %"), rows, caption=caption)]


ARTEFACT = Artefact(
    name="weight-uncertainty/mixture-grid",
    order=19,
    group="mnist",
    title="Twenty-seven scale mixtures, by validation rows",
    requirements=("WU-43",),
    run=run,
    reference={"best": "π = ½, −log σ₁ = 0, −log σ₂ = 7"},
    left_open=(
        "which width, and by which rows the best was found: 400 units, 10,000 rows of the training set",
        "which subset of the grid was run: all of it",
    ),
    durations=("some seconds", "6 minutes on a GPU"),
    show=show,
)
