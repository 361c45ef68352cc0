"""Ensembles about the curve, of plain nets and of nets trained with dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import doxa
from doxa.engine.contracts import Learner
from doxa.predict.belief import Belief
from doxa_replicate.columns import AS_RUN
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.curve.measures import band_widths, function_band, input_grid
from doxa_replicate.weight_uncertainty.curve.trainings.fleets import train_beliefs
from doxa_replicate.weight_uncertainty.curve.trainings.judging import training_points
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    BATCH,
    EVENLY,
    MINIBATCHES,
    NOISE,
    CurveRecipe,
    curve_size,
    epochs_at_size,
    seeds,
)
from doxa_replicate.weight_uncertainty.last_minibatch import LowestLoss, RecordsLastLoss
from doxa_replicate.weight_uncertainty.matmul import training_matmul

LEARNERS: dict[str, Learner] = {"plain": doxa.learners.point(), "dropout": doxa.learners.dropout(0.5)}


@dataclass(frozen=True)
class EnsembleRecipe:
    """How a column trains the nets of its ensembles."""

    recipe: CurveRecipe
    epochs: int
    noise: float  # of the likelihood
    keeps_lowest: bool  # whether nets are those of the lowest last-minibatch loss

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "recipe": self.recipe.as_dict()}


# A likelihood of scale √½ makes the loss the squared error, as the authors' nets have it.
ENSEMBLE_AS_RUN = EnsembleRecipe(CurveRecipe(1e-3, 5000, data=EVENLY), 1000, math.sqrt(0.5), keeps_lowest=True)
ENSEMBLE_AS_WRITTEN = EnsembleRecipe(CurveRecipe(1e-3, 500), 1500, NOISE, keeps_lowest=False)


def ensemble_recipe(column: str) -> EnsembleRecipe:
    """The recipe of a column: nothing is chosen for ensembles, which are those as written in the column chosen."""
    return ENSEMBLE_AS_RUN if column == AS_RUN else ENSEMBLE_AS_WRITTEN


def ensemble_settings(options: ReplicationOptions, column: str) -> dict[str, Any]:
    return ensemble_recipe(column).as_dict() | {
        "width": curve_size(options).width,
        "batch": BATCH,
        "matmul": training_matmul(options),
        "ensemble": curve_size(options).ensemble,
        "seeds": seeds(options),
        "members": "each with a start and a seed of its own for batches and masks",
    }


def ensemble_records(options: ReplicationOptions, column: str, kind: str) -> list[dict[str, Any]]:
    """Twenty-five nets, plain or trained with dropout, for each seed: bands over nets, not over draws."""
    recipe = ensemble_recipe(column)
    settings = ensemble_settings(options, column) | {
        "kind": kind,
        "functions": curve_size(options).functions,
        "epochs_at_size": epochs_at_size(options, recipe.epochs),
        "device": options.device or "cpu",
    }
    name = f"regression-ensemble-{kind}-{'run' if column == AS_RUN else 'written'}"
    make = partial(_train_ensembles, options, kind, recipe)
    records: list[dict[str, Any]] = cached_part(options, name, settings, make)[kind]
    return records


def _train_ensembles(options: ReplicationOptions, kind: str, recipe: EnsembleRecipe) -> dict[str, list[dict[str, Any]]]:
    size, curve_seeds = curve_size(options), seeds(options)
    options.say(f"regression, {size.ensemble * len(curve_seeds)} {kind} nets, {recipe.epochs} epochs")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        nets = [doxa.nets.mlp(1, (size.width,) * 2, 1) for _ in range(size.ensemble * len(curve_seeds))]
    keeper = LowestLoss(BATCH, MINIBATCHES) if recipe.keeps_lowest else None
    beliefs = train_beliefs(
        options,
        recipe.recipe,
        [RecordsLastLoss(LEARNERS[kind])] * len(nets),
        [seed for seed in curve_seeds for _ in range(size.ensemble)],
        doxa.likelihoods.gaussian(recipe.noise),
        nets,
        epochs=epochs_at_size(options, recipe.epochs),
        watch=keeper,
        training_seeds=[1000 * seed + k for seed in curve_seeds for k in range(size.ensemble)],
    )
    rows: list[dict[str, Any]] = []
    x = input_grid(size.band_points)
    for k, seed in enumerate(curve_seeds):
        trained = beliefs[k * size.ensemble : (k + 1) * size.ensemble]
        members = trained if keeper is None else [keeper.kept(belief) for belief in trained]
        functions = partial(_outputs_at_means, members)
        kept_at = [len(member.record.history) for member in members]
        row: dict[str, Any] = {"seed": seed, "kept_at": sum(kept_at) / len(kept_at), **band_widths(functions)}
        if kind == "dropout":
            row["with_masks"] = band_widths(partial(_outputs_with_masks, members, size.functions))
        if seed == curve_seeds[0]:
            row |= {"band": function_band(x[:, 0], functions(x)), "training": training_points(recipe.recipe.data, seed)}
        rows.append(row)
    return {kind: rows}


def _outputs_at_means(members: Sequence[Belief], x: Any) -> Tensor:
    """What each net says with its trained weights, nothing dropped [K, B]."""
    return torch.cat([member.predict_at_mean(x).outputs[..., 0] for member in members])


def _outputs_with_masks(members: Sequence[Belief], draws: int, x: Any) -> Tensor:
    """What the nets say when units are dropped while predicting too [K·S, B]."""
    draws_per_member = max(1, draws // len(members))
    return torch.cat([member.predict(x, draws_per_member, seed=k).outputs[..., 0] for k, member in enumerate(members)])
