"""Nets about the curve, trained side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import doxa
from doxa.contracts import Likelihood
from doxa.engine.contracts import Learner
from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    BATCH,
    MINIBATCHES,
    TRAIN_SIZE,
    CurveRecipe,
    curve_size,
)
from doxa_replicate.weight_uncertainty.last_minibatch import last_loss
from doxa_replicate.weight_uncertainty.matmul import matmul_precision, precise_watch, training_matmul


def train_beliefs(
    options: ReplicationOptions,
    recipe: CurveRecipe,
    learners: Sequence[Learner],
    curve_seeds: Sequence[int],
    likelihood: Likelihood,
    nets: Sequence[Any] | None = None,
    lr: Sequence[Any] | None = None,
    optimiser: Any = None,
    epochs: int | None = None,
    watch: Callable[..., Any] | None = None,
    training_seeds: Sequence[int] | None = None,
) -> list[Belief]:
    """Beliefs about each seed's curve, trained side by side, by that seed too unless others are given.

    On a GPU products are rounded meanwhile, as MNIST's nets have it; a watch predicts in full precision.
    """
    distinct = sorted({recipe.data.training_seed(seed) for seed in curve_seeds})
    curves = {seed: recipe.data.training(seed) for seed in distinct}
    position = {seed: i for i, seed in enumerate(distinct)}
    table = tuple(
        np.concatenate([getattr(curves[s], array_name) for s in distinct]) for array_name in ("x_train", "y_train")
    )
    rows = [np.arange(TRAIN_SIZE) + TRAIN_SIZE * position[recipe.data.training_seed(seed)] for seed in curve_seeds]
    with matmul_precision(training_matmul(options)):
        return doxa.fleet(
            list(nets) if nets is not None else doxa.nets.mlp(1, (curve_size(options).width,) * 2, 1),
            table,
            learners=list(learners),
            likelihood=likelihood,
            seeds=list(curve_seeds if training_seeds is None else training_seeds),
            lr=list(lr) if lr is not None else recipe.schedule(options),
            rows=rows,
            epochs=curve_size(options).epochs if epochs is None else epochs,
            batch_size=BATCH,
            optimiser=doxa.optimisers.adam(eps=recipe.eps) if optimiser is None else optimiser,
            device=options.device,
            progress=options.progress,
            watch=precise_watch(watch),
            watch_every=getattr(watch, "epochs_between", 1),
        )


def free_energies(belief: Belief) -> list[float]:
    """The free energy of every epoch: N times the mean NLL while it was learned, and the KL at its end."""
    return [TRAIN_SIZE * row["nll"] + row["kl"] for row in belief.record.history]


def last_losses(belief: Belief) -> list[float]:
    """What the authors drew: the loss of every epoch's last minibatch, with its halved share of the KL."""
    return [last_loss(row, BATCH, MINIBATCHES) for row in belief.record.history]
