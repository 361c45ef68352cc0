"""How the nets of a table or figure were trained, in words and numbers enough to train them again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.digits.trainings.choice import (
    candidate_recipes,
    choose_recipe,
    chosen_model,
)
from doxa_replicate.weight_uncertainty.digits.trainings.judging import authors_draws
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AS_RUN,
    AS_WRITTEN,
    BATCH,
    MEAN_START,
    RHO_START,
    TrainingRecipe,
    draw_count,
    recipe_at_size,
)
from doxa_replicate.weight_uncertainty.matmul import training_matmul


def training_settings(options: ReplicationOptions, chosen: Iterable[tuple[str, int]] = ()) -> dict[str, Any]:
    """Recipes as run and as written, what all nets share, and the recipes of those that are chosen, by their widths."""
    return {
        "as_run": recipe_at_size(options, AS_RUN).as_dict(),
        "as_written": recipe_at_size(options, AS_WRITTEN).as_dict(),
        "batch": BATCH,
        "draws": {"error": draw_count(options), "error_as_run": authors_draws(options)},
        "start": f"means uniform on {MEAN_START}, rho on {RHO_START}; with a scale at the start torch's own means; "
        "torch's own start of point estimates",
        "optimiser": "Adam",
        "inputs": "pixels / 255",
        "matmul": f"{training_matmul(options)} precision in training, highest in predictions",
        **({"chosen": chosen_recipes} if (chosen_recipes := _chosen(options, chosen)) else {}),
    }


def _chosen(options: ReplicationOptions, nets: Iterable[tuple[str, int]]) -> dict[str, Any]:
    return {f"{name}, {width}": _chosen_recipe(options, name, width) for name, width in nets}


def _chosen_recipe(options: ReplicationOptions, name: str, width: int) -> dict[str, Any]:
    best = choose_recipe(options, name, width)["best"]
    recipe: TrainingRecipe = recipe_at_size(options, candidate_recipes(options, name, width)[best])
    return {"prior": chosen_model(options, name).prior, **recipe.key()}
