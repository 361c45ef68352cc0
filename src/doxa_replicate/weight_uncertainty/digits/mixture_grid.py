"""The grid of scale mixtures, chosen on validation rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.trainings.mixtures import SEED, WIDTH, grid_scores
from doxa_replicate.weight_uncertainty.digits.trainings.models import AS_WRITTEN, recipe_at_size


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
