"""All that is judged of one trained net: scores, calibration, what pruning costs, and attacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa.judge import brier, ece, ece_classwise, nll, pruned_shares, reliability, reliability_all_classes
from doxa.judge import error as error_rate
from doxa.judge.metrics.calibration import Reliability
from doxa.posteriors import delta
from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.digits.trainings.attacks import (
    AUTHORS_RADII,
    RADII,
    SOURCES,
    WHITE_BOX,
    attack_directions,
    attacked_images,
    authors_rows,
    gradient_signs,
)
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AUTHORS_DRAWS,
    COMPARED_MODELS,
    WIDTHS,
    DigitModel,
    draw_count,
)
from doxa_replicate.weight_uncertainty.digits.trainings.rows import ROTATION, load_digits, rotate_images
from doxa_replicate.weight_uncertainty.digits.trainings.weights import BINS as WEIGHT_BINS
from doxa_replicate.weight_uncertainty.digits.trainings.weights import REACH, weight_statistics

Cell = dict[str, Any]
FRACTIONS = (0.0, 0.25, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
BINS = 10
# All by which a net is judged: with any of it changed, what was kept is no longer what is asked for.
JUDGED_BY = {
    "fractions": FRACTIONS,
    "bins": BINS,
    "histogram": [REACH, WEIGHT_BINS],
    "radii": [RADII, WHITE_BOX, AUTHORS_RADII],
    "sources": list(SOURCES),
    "draws of the authors": AUTHORS_DRAWS,
    "turned": ROTATION,
}


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


def error_on_way(options: ReplicationOptions, model: DigitModel, belief: Belief) -> float:
    """The test error with so many draws as the authors took for every score, in per cent."""
    x, y = load_digits(options).test
    return 100 * float(error_rate(class_probabilities(model.is_belief, belief, x, authors_draws(options)), y))


def authors_draws(options: ReplicationOptions) -> int:
    return int(options.by_size(2, AUTHORS_DRAWS))


def judge_briefly(options: ReplicationOptions, model: DigitModel, belief: Belief, with_pruning: bool = True) -> Cell:
    """What is asked of a net on its way: scores, with all draws and with the authors', and what pruning costs."""
    x, y = load_digits(options).test
    cell: Cell = {
        "epoch": len(belief.record.history),
        "test": scores(class_probabilities(model.is_belief, belief, x, draw_count(options)), y),
        "error_as_run": error_on_way(options, model, belief),
    }
    return cell | ({"pruned": pruning_scores(options, belief)} if model.is_belief and with_pruning else {})


def judge_cell(options: ReplicationOptions, model: DigitModel, width: int, belief: Belief) -> Cell:
    x, y = load_digits(options).test
    p = class_probabilities(model.is_belief, belief, x, draw_count(options))
    history = belief.record.history
    cell: Cell = {
        **judge_briefly(options, model, belief),
        "train_nll": history[-1]["nll"],
        "kl": history[-1]["kl"],
        "weights": weight_statistics(predicting_belief(model.is_belief, belief)),
        "curve": [[k + 1, row["test_error"]] for k, row in enumerate(history) if "test_error" in row],
    }
    if model.is_belief:
        cell["scale"] = float(belief.posterior.scale[: belief.layout.random].double().median())
    if model.dropout_rate:
        cell["with_masks"] = scores(belief.predict(x, draw_count(options)).mean, y)
    if width == WIDTHS[-1] and model.name in (*COMPARED_MODELS, "mixture"):
        shifted_p = class_probabilities(model.is_belief, belief, rotate_images(x), draw_count(options))
        cell |= {
            "shifted": scores(shifted_p, y),
            "reliability": {
                "clean": reliability_bins(p, y),
                "shifted": reliability_bins(shifted_p, y),
                "as drawn": reliability_as_drawn(
                    class_probabilities(model.is_belief, belief, x, authors_draws(options)), y
                ),
            },
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


def reliability_as_drawn(p: Tensor, y: Tensor, bins: int = BINS) -> dict[str, Any]:
    """Scores of all classes as the authors sorted them: by the whole part of 10 p, in single precision.

    A probability that is 1, or rounds to it, makes a bin of its own beyond the ten that are drawn.
    """
    is_right = torch.zeros_like(p, dtype=torch.bool).scatter_(1, y[:, None].long(), True).flatten()
    p = p.float().flatten()
    index = (p * bins).long().clamp(0, bins)
    columns: dict[str, list[Any]] = {"confidence": [], "accuracy": [], "count": []}
    for k in range(bins + 1):
        inside = index == k
        count = int(inside.sum())
        columns["confidence"].append(float(p[inside].double().mean()) if count else None)
        columns["accuracy"].append(float(is_right[inside].double().mean()) if count else None)
        columns["count"].append(count)
    return columns


def pruning_scores(options: ReplicationOptions, belief: Belief, fractions: Sequence[float] = FRACTIONS) -> Cell:
    """What is left of a belief's skill without its least relevant weights, and from which layers they go."""
    x, y = load_digits(options).test
    pruned = [belief.prune(fraction) for fraction in fractions]
    rows = [scores(each.predict(x, draw_count(options)).mean, y) for each in pruned]
    as_run = [100 * float(error_rate(each.predict(x, authors_draws(options)).mean, y)) for each in pruned]
    shares = pruned_shares(belief, fractions)
    return {
        "fraction": list(fractions),
        **{key: [row[key] for row in rows] for key in ("error", "nll", "ece")},
        "error_as_run": as_run,
        "shares": {name: column for name, column in shares.items() if name != "fraction"},
    }


def attack_scores(options: ReplicationOptions, model: DigitModel, belief: Belief) -> Cell:
    """Scores against the radius of an attack by other nets' gradients, and by the net's own."""
    x, y = load_digits(options).test
    predict = partial(class_probabilities, model.is_belief, belief)
    transfer_images = attacked_images(x, attack_directions(options), RADII)
    attacked_rows = slice(0, int(options.by_size(200, 2000)))
    attacked_belief = predicting_belief(model.is_belief, belief)
    white_box_images = attacked_images(
        x[attacked_rows],
        gradient_signs(attacked_belief, x[attacked_rows], y[attacked_rows], 20 if model.is_belief else 1),
        WHITE_BOX,
    )
    draws = draw_count(options)
    return {
        "transfer": {radius: scores(predict(images, draws), y) for radius, images in transfer_images.items()},
        "white_box": {
            radius: scores(predict(images, draws), y[attacked_rows]) for radius, images in white_box_images.items()
        },
        "as run": {
            f"{source}, {rows}, {'kept in range' if clamped else 'not kept in range'}": {
                radius: 100 * float(1 - error_rate(predict(images, authors_draws(options)), labels))
                for radius, images in attacked_images(
                    images_of_rows, attack_directions(options, source, rows), AUTHORS_RADII, clamped
                ).items()
            }
            for source in SOURCES
            for rows, (images_of_rows, labels) in authors_rows(options).items()
            for clamped in (True, False)
        },
    }
