"""The trainings behind the regression figures: fleets of beliefs about a curve, and what is read off each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

import doxa
from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.curve.trainings.choice import column_recipe
from doxa_replicate.weight_uncertainty.curve.trainings.fleets import train_beliefs
from doxa_replicate.weight_uncertainty.curve.trainings.judging import judged_by, summarise_belief
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    BATCH,
    COLUMNS,
    DEFAULT_PRIOR,
    FULL,
    MEAN_START,
    MINIBATCHES,
    NOISE,
    RHO_START,
    TRAIN_SIZE,
    CurveRecipe,
    CurveSetting,
    curve_size,
    epochs_at_size,
    fleet_members,
    seeds,
)
from doxa_replicate.weight_uncertainty.last_minibatch import LowestLoss
from doxa_replicate.weight_uncertainty.local_reparameterisation.held_still import NOISES, held_still_variances
from doxa_replicate.weight_uncertainty.local_reparameterisation.shared_biases import local_outputs
from doxa_replicate.weight_uncertainty.matmul import training_matmul

Records = dict[str, list[dict[str, Any]]]  # by setting, one for each seed


def common_settings(options: ReplicationOptions, column: str) -> dict[str, Any]:
    """What the trainings of a column have in common, for the record."""
    size = curve_size(options)
    return {
        "net": f"1-{size.width}-{size.width}-1, ReLU",
        "epochs": size.epochs,
        "batch": BATCH,
        "samples": size.samples,
        "optimiser": "Adam",
        "recipe": column_recipe(options, column).as_dict(),
        "mean": MEAN_START,
        "rho": RHO_START,
        "likelihood": NOISE,
        "training_points": TRAIN_SIZE,
        "draws": {"densities": size.draws, "bands": size.functions},
        "rmse_every": size.every,
        "matmul": training_matmul(options),  # in training; "highest" in whatever is judged
    }


def settings_by_column(options: ReplicationOptions) -> dict[str, Any]:
    return {column: common_settings(options, column) for column in COLUMNS}


def belief_records(options: ReplicationOptions, column: str, fleet: str) -> Records:
    """All that is kept of a fleet's beliefs, by setting and seed; trained once, whichever figure asks first.

    Those that are trained for as many epochs are a program, and a part, of their own.
    """
    members, recipe = fleet_members(column, fleet), column_recipe(options, column)
    members_by_epochs: dict[int, list[CurveSetting]] = {}
    for member in members:
        epochs = epochs_at_size(options, recipe.epochs.get(member.name, FULL.epochs))
        members_by_epochs.setdefault(epochs, []).append(member)
    records: Records = {}
    for epochs, group in members_by_epochs.items():
        settings = common_settings(options, column) | {
            "fleet": [vars(member) for member in group],
            "epochs": epochs,
            "seeds": seeds(options),
            "judged_by": judged_by(options),
            "device": options.device or "cpu",
        }
        # By what is trained, not for which column: a recipe that is chosen may be the one that was written.
        name = f"regression-{fleet}-{epochs}".replace(" ", "-")
        records |= cached_part(options, name, settings, partial(_train_fleet, options, fleet, recipe, group, epochs))
    return {member.name: records[member.name] for member in members}


def _train_fleet(
    options: ReplicationOptions,
    fleet: str,
    recipe: CurveRecipe,
    members: Sequence[CurveSetting],
    epochs: int,
) -> Records:
    fleet_seeds = seeds(options)
    options.say(f"regression, {fleet}: {len(members) * len(fleet_seeds)} nets, {epochs} epochs")
    pairs = [(member, seed) for member in members for seed in fleet_seeds]
    learners = {member: member.build_learner(curve_size(options).samples, recipe) for member in members}
    keeper = LowestLoss(BATCH, MINIBATCHES) if fleet in recipe.keeps_lowest else None
    predict = _local_means if members[0].local and recipe.shared_biases else _weight_means
    beliefs = train_beliefs(
        options,
        recipe,
        [learners[member] for member, _ in pairs],
        [seed for _, seed in pairs],
        doxa.likelihoods.gaussian(members[0].noise),
        epochs=epochs,
        watch=CurveWatch(recipe, predict, curve_size(options).every, keeper),
    )
    records: Records = {}
    for (member, seed), belief in zip(pairs, beliefs, strict=True):
        kept = belief if keeper is None else keeper.kept(belief)
        record = {"seed": seed, **summarise_belief(options, belief, kept, recipe.data, seed, seed == fleet_seeds[0])}
        if fleet == "gaussian" and member.prior == (DEFAULT_PRIOR,):
            learners_by_noise = {name: CurveSetting(local=name == "local").build_learner(1, recipe) for name in NOISES}
            record["held_still"] = held_still_variances(options, kept, learners_by_noise, recipe.data.training(seed))
        records.setdefault(member.name, []).append(record)
    return records


@dataclass(frozen=True, eq=False)
class CurveWatch:
    """A watch that takes the error of the mean prediction every so many epochs, and may keep beliefs meanwhile."""

    recipe: CurveRecipe
    predict: Callable[[Sequence[Belief], Any, int, int], Sequence[Any]]
    every: int
    keeper: LowestLoss | None

    @property
    def epochs_between(self) -> int:
        return self.every if self.keeper is None else 1

    def __call__(self, beliefs: list[Belief]) -> list[Mapping[str, float]]:
        if self.keeper is not None:
            self.keeper(beliefs)
        epoch = len(beliefs[0].record.history)
        if epoch % self.every:
            return [{} for _ in beliefs]
        data = self.recipe.data
        test = data.watched(data.test_seed)
        y = torch.as_tensor(test.y_test[:, 0])
        means = self.predict(beliefs, test.x_test, data.watched_draws, epoch)
        return [{"rmse": float((mean.cpu() - y).square().mean().sqrt())} for mean in means]


def _weight_means(beliefs: Sequence[Belief], x: Any, draws: int, seed: int) -> list[Any]:
    """Means over whole draws of the weights."""
    return [prediction.mean[..., 0] for prediction in doxa.predict(beliefs, x, samples=draws, seed=seed)]


def _local_means(beliefs: Sequence[Belief], x: Any, draws: int, seed: int) -> list[Any]:
    """Means over draws of the noise that was learned with, each point having its own."""
    return [local_outputs(belief, x, draws, seed).mean(0) for belief in beliefs]
