"""A cell: one trained net with all that is judged of it, since nets themselves are too large to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import doxa
from doxa.judge import (
    brier,
    ece,
    ece_classwise,
    nll,
    pruned_shares,
    reliability,
    reliability_all_classes,
)
from doxa.judge import error as error_rate
from doxa.judge.metrics.calibration import Reliability
from doxa.posteriors import delta
from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.digits.trainings.attacks import (
    RADII,
    WHITE_BOX,
    attacked_images,
    gradient_signs,
    train_attacker,
)
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AS_WRITTEN,
    BATCH,
    MEAN_START,
    MODELS,
    RHO_START,
    WRITTEN_COLUMN,
    DigitModel,
    TrainingRecipe,
    build_learner,
    draw_count,
    fleet_models,
    learning_rate,
    recipe_at_size,
    seeds_of,
    start_net,
    width_at_size,
)
from doxa_replicate.weight_uncertainty.digits.trainings.rows import ROTATION, load_digits, rotate_images

Cell = dict[str, Any]
FRACTIONS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
BINS = 10
WATCH_EVERY = 10  # epochs from one point of a learning curve to the next
WATCH_DRAWS = 10  # draws for such a point
HISTOGRAM_REACH, HISTOGRAM_BINS = 1.0, 160  # of histograms of weights
# All by which a net is judged: with any of it changed, what was kept is no longer what is asked for.
JUDGED_BY = {
    "fractions": FRACTIONS,
    "bins": BINS,
    "watching": [WATCH_EVERY, WATCH_DRAWS],
    "histogram": [HISTOGRAM_REACH, HISTOGRAM_BINS],
    "radii": [RADII, WHITE_BOX],
    "turned": ROTATION,
}


def cells(
    options: ReplicationOptions,
    name: str,
    width: int,
    recipe: TrainingRecipe = AS_WRITTEN,
    column: str = WRITTEN_COLUMN,
    model: DigitModel | None = None,
) -> list[Cell]:
    """The cells of a model at a width, one for each seed; those of a family are trained together, and only once.

    `model` is another of the same name, with a prior that was chosen.
    """
    fleet_names, sized_recipe = fleet_models(name, width, column), recipe_at_size(options, recipe)
    models = {member_name: MODELS[member_name] if model is None else model for member_name in fleet_names}
    members = [(member_name, seed) for member_name in fleet_names for seed in seeds_of(options, member_name, width)]
    settings = {
        "models": {
            member_name: [member_model.prior, member_model.dropout_rate] for member_name, member_model in models.items()
        },
        "width": width_at_size(options, width),
        "recipe": sized_recipe.as_dict(),
        "batch": BATCH,
        "start": [MEAN_START, RHO_START],
        "draws": draw_count(options),
        "judged": JUDGED_BY,
        "members": members,
        "device": options.device or "cpu",
    }
    part_name = f"mnist-{column}-{fleet_names[0]}-{width}"
    cells_by_name: dict[str, list[Cell]] = cached_part(
        options, part_name, settings, lambda: _train_cells(options, models, members, width, sized_recipe)
    )
    return cells_by_name[name]


def _train_cells(
    options: ReplicationOptions,
    models: Mapping[str, DigitModel],
    members: Sequence[tuple[str, int]],
    width: int,
    recipe: TrainingRecipe,
) -> dict[str, list[Cell]]:
    options.say(f"MNIST, {', '.join(models)}, {width} units, {recipe.epochs} epochs: {len(members)} nets")
    learners = {name: build_learner(model, recipe) for name, model in models.items()}
    halfway: dict[str, Any] = {}
    is_belief = next(iter(models.values())).is_belief
    beliefs = doxa.fleet(
        [start_net(options, width, seed) for _, seed in members],
        load_digits(options).train,
        learners=[learners[name] for name, _ in members],
        likelihood=doxa.likelihoods.categorical(),
        seeds=[seed for _, seed in members],
        lr=learning_rate(recipe),
        epochs=recipe.epochs,
        batch_size=BATCH,
        device=options.device,
        progress=options.progress,
        watch=partial(_watch, options, is_belief, recipe.epochs, halfway) if width == 1200 or is_belief else None,
        watch_every=options.by_size(2, WATCH_EVERY),
    )
    cells_by_name: dict[str, list[Cell]] = {}
    for (name, seed), belief in zip(members, beliefs, strict=True):
        scores_of_cell = judge_cell(options, models[name], width, belief)
        cells_by_name.setdefault(name, []).append(
            {"seed": seed, **scores_of_cell, "halfway": halfway.get(_label(belief))}
        )
    return cells_by_name


def _label(belief: Belief) -> str:
    """What tells the members of a fleet apart while they are watched."""
    return f"{belief.prior!r}, {belief.record.settings['seed']}"


def _watch(
    options: ReplicationOptions, is_belief: bool, epochs: int, halfway: dict[str, Any], beliefs: list[Belief]
) -> list[Mapping[str, float]]:
    """The test error on the way, of the widest nets; and how far a belief can be pruned after half of the epochs."""
    x, y = load_digits(options).test
    rows: list[Mapping[str, float]] = []
    for belief in beliefs:
        is_widest = belief.layout.slots[0].shape[0] == width_at_size(options, 1200)
        rows.append(
            {"test_error": float(error_rate(class_probabilities(is_belief, belief, x, WATCH_DRAWS), y))}
            if is_widest
            else {}
        )
        if is_belief and len(belief.record.history) == epochs // 2:
            halfway[_label(belief)] = pruning_scores(options, belief)
    return rows


def class_probabilities(is_belief: bool, belief: Belief, x: Tensor, samples: int) -> Tensor:
    """Class probabilities [B, 10]: the mean over draws of a belief; of a point estimate, nothing dropped."""
    prediction = belief.predict(x, samples) if is_belief else belief.predict_at_mean(x)
    return prediction.mean


def predicting_belief(is_belief: bool, belief: Belief) -> Belief:
    """What its own predictions are made of: a belief as it is; of a point estimate the weights, nothing dropped."""
    return belief if is_belief else replace(belief, posterior=delta(belief.posterior.mean, belief.layout.random))


def scores(p: Tensor, y: Tensor) -> dict[str, float]:
    """Error and ECE in per cent, NLL in nats."""
    return {
        "error": 100 * float(error_rate(p, y)),
        "nll": float(nll(p, y)),
        "ece": 100 * float(ece(p, y)),
        "ece_classwise": 100 * float(ece_classwise(p, y)),
        "brier": float(brier(p, y)),
    }


def judge_cell(options: ReplicationOptions, model: DigitModel, width: int, belief: Belief) -> Cell:
    x, y = load_digits(options).test
    p = class_probabilities(model.is_belief, belief, x, draw_count(options))
    history = belief.record.history
    cell: Cell = {
        "test": scores(p, y),
        "train_nll": history[-1]["nll"],
        "kl": history[-1]["kl"],
        "weights": weight_statistics(predicting_belief(model.is_belief, belief)),
        "curve": [[k + 1, 100 * row["test_error"]] for k, row in enumerate(history) if "test_error" in row],
        "pruned": pruning_scores(options, belief) if model.is_belief else None,
    }
    if model.dropout_rate:
        cell["with_masks"] = scores(belief.predict(x, draw_count(options)).mean, y)
    if width == 1200:
        shifted_p = class_probabilities(model.is_belief, belief, rotate_images(x), draw_count(options))
        cell |= {
            "shifted": scores(shifted_p, y),
            "reliability": {"clean": reliability_bins(p, y), "shifted": reliability_bins(shifted_p, y)},
        }
        cell |= attack_scores(options, model, belief)
    return cell


def reliability_bins(p: Tensor, y: Tensor) -> dict[str, Any]:
    return {
        "top": _bin_columns(reliability(p, y, BINS)),
        "all classes": _bin_columns(reliability_all_classes(p, y, BINS)),
    }


def _bin_columns(diagram: Reliability) -> dict[str, Any]:
    return {
        "confidence": diagram.confidence.tolist(),
        "accuracy": diagram.accuracy.tolist(),
        "count": diagram.count.tolist(),
        "ece": 100 * float(diagram.ece),
    }


def weight_statistics(belief: Belief) -> dict[str, Any]:
    """One draw of the weights, biases aside: densities, and spreads and signal-to-noise layer by layer."""
    (draw,) = belief.posterior.draws(1, (0, "histogram"))
    layers = {
        weight_slot.name: draw.weights[weight_slot.span]
        for weight_slot in belief.layout.random_slots
        if len(weight_slot.shape) > 1
    }
    all_weights = torch.cat(list(layers.values()))
    edges = np.linspace(-HISTOGRAM_REACH, HISTOGRAM_REACH, HISTOGRAM_BINS + 1)
    statistics: dict[str, Any] = {
        "edges": [-HISTOGRAM_REACH, HISTOGRAM_REACH, HISTOGRAM_BINS],
        "density": _density(all_weights, edges),
        "std": float(all_weights.double().std()),
        "std_of_means": float(
            torch.cat([belief.posterior.mean[weight_slot.span] for weight_slot in _matrices(belief)]).double().std()
        ),
        "layers": {name: {"density": _density(w, edges), "std": float(w.double().std())} for name, w in layers.items()},
    }
    relevance = belief.posterior.relevance
    for slot in _matrices(belief):
        signal_to_noise = relevance[slot.span].double()
        finite = signal_to_noise[signal_to_noise.isfinite()]
        statistics["layers"][slot.name] |= {
            "signal_to_noise": float(finite.mean()) if len(finite) else None,
            "median_signal_to_noise": float(finite.median()) if len(finite) else None,
        }
    return statistics


def _matrices(belief: Belief) -> list[Any]:
    return [s for s in belief.layout.random_slots if len(s.shape) > 1]


def _density(w: Tensor, edges: Any) -> list[float]:
    counts, _ = np.histogram(w.detach().cpu().double().numpy(), edges)
    return [float(c) / (w.numel() * (edges[1] - edges[0])) for c in counts]


def pruning_scores(options: ReplicationOptions, belief: Belief) -> dict[str, Any]:
    """What is left of a belief's skill without its least relevant weights, and from which layers they go."""
    x, y = load_digits(options).test
    rows = [scores(belief.prune(fraction).predict(x, draw_count(options)).mean, y) for fraction in FRACTIONS]
    shares = pruned_shares(belief, FRACTIONS)
    return {
        "fraction": list(FRACTIONS),
        **{key: [row[key] for row in rows] for key in ("error", "nll", "ece")},
        "shares": {name: column for name, column in shares.items() if name != "fraction"},
    }


def attack_scores(options: ReplicationOptions, model: DigitModel, belief: Belief) -> Cell:
    """Scores against the radius of an attack by another net's gradients, and by the net's own."""
    x, y = load_digits(options).test
    transfer_images = attacked_images(x, attack_directions(options), RADII)
    attacked_rows = slice(0, int(options.by_size(200, 2000)))
    attacked_belief = predicting_belief(model.is_belief, belief)
    white_box_images = attacked_images(
        x[attacked_rows],
        gradient_signs(attacked_belief, x[attacked_rows], y[attacked_rows], 20 if model.is_belief else 1),
        WHITE_BOX,
    )
    predict = partial(class_probabilities, model.is_belief, belief, samples=draw_count(options))
    return {
        "transfer": {radius: scores(predict(images), y) for radius, images in transfer_images.items()},
        "white_box": {radius: scores(predict(images), y[attacked_rows]) for radius, images in white_box_images.items()},
    }


_directions_cache: dict[Any, Tensor] = {}


def attack_directions(options: ReplicationOptions) -> Tensor:
    """The signs of the attacker's gradients at all test images, the same for every net that is attacked."""
    key = (options.full, options.device)
    if key not in _directions_cache:
        x, y = load_digits(options).test
        _directions_cache[key] = gradient_signs(train_attacker(options), x, y, 1)
    return _directions_cache[key]
