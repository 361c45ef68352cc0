"""What the curve's figures need to know of a trained belief."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa.data.sets.curve import curve
from doxa.judge import gibbs_nll, lppd, lppd_bias, lppd_error
from doxa.predict.belief import Belief
from doxa.weights.layout import Layout
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.curve.measures import (
    INSIDE,
    LEVELS,
    OUTSIDE,
    band_widths,
    coverage,
    epochs_until,
    function_band,
    input_grid,
    inside_data,
    late_variance,
    tail_length,
    thin_curve,
    variance_of_differences,
)
from doxa_replicate.weight_uncertainty.curve.trainings.fleets import free_energies, last_losses
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import CurveData, curve_size
from doxa_replicate.weight_uncertainty.local_reparameterisation.held_still import (
    BATCHES,
    GRADIENT_BATCH,
    estimate_count,
)

COVERAGE_SEED = 78  # the seed of the points on which coverage is counted, no member's own
COVERAGE_POINTS = 2000
LAST_EPOCHS = 200  # over which the authors' last-minibatch losses are averaged where they are told


def judged_by(options: ReplicationOptions) -> dict[str, Any]:
    """What a belief's numbers are taken with besides its column's points: other ones would be another part."""
    return {
        "coverage": [COVERAGE_SEED, COVERAGE_POINTS],
        "held still": [BATCHES, GRADIENT_BATCH, estimate_count(options)],
        "widths": [INSIDE, OUTSIDE],
        "levels": LEVELS,
    }


def summarise_belief(
    options: ReplicationOptions, last: Belief, kept: Belief, data: CurveData, seed: int, with_band: bool
) -> dict[str, Any]:
    """How a belief was learned until its `last` epoch, and what was `kept` of it; bands of some alone."""
    size, history = curve_size(options), last.record.history
    rmse = [[k + 1, row["rmse"]] for k, row in enumerate(history) if "rmse" in row]
    record: dict[str, Any] = {
        "epochs": len(history),
        "kept_at": len(kept.record.history),
        "free_energy": loss_record(free_energies(last), size.epochs),
        "last_loss": loss_record(last_losses(last), size.epochs),
        "rmse": rmse[:: max(1, len(rmse) // 150)],
        "rmse_end": float(np.mean([value for _, value in rmse[-10:]])),
        "rmse_variance": late_variance([value for _, value in rmse]),
        "kl_per_weight": history[-1]["kl"] / last.layout.random,
        "scales": mean_scales(kept),
        "densities": log_densities(options, kept, data),
        "densities_last": log_densities(options, last, data) if kept is not last else None,
        **band_widths(_function_sampler(kept, size.functions)),
        "coverage": coverage(kept, curve(COVERAGE_SEED, COVERAGE_POINTS), size.functions),
    }
    if with_band:
        x = input_grid(size.band_points)
        outputs = kept.predict(x, size.functions).outputs[..., 0]
        record["band"] = function_band(x[:, 0], outputs)
        record["functions"] = outputs[:10].tolist()
        record["training"] = training_points(data, seed)
    return record


def loss_record(values: Sequence[float], document_epochs: int) -> dict[str, Any]:
    """How a loss came down: a curve, where it ends, how far it jumps, and when it was nearly there."""
    end = float(np.mean(values[-tail_length(values) :]))
    early = values[:document_epochs]
    return {
        "curve": thin_curve(values),
        "end": end,
        "end_of_200": float(np.mean(values[-LAST_EPOCHS:])),
        "at_document_epochs": float(np.mean(early[-tail_length(early) :])),
        "differences": variance_of_differences(values),
        "epochs_of_95_percent": epochs_until(values, end + 0.05 * (values[0] - end)),
        "epochs_to_5_percent": epochs_until(values, end + 0.05 * abs(end)),
    }


def mean_scales(belief: Belief) -> list[float]:
    """The mean scale of each layer's weights."""
    views = Layout(belief.layout.random_slots).views(belief.posterior.scale)
    return [float(scale.mean()) for scale in views.values() if scale.dim() > 1]


def log_densities(options: ReplicationOptions, belief: Belief, data: CurveData) -> dict[str, float]:
    """The mean over draws of log densities, as the authors printed it, and the lppd, the log of their mean."""
    test = data.test()
    prediction = belief.predict(test.x_test, curve_size(options).draws)
    log_p = prediction.log_prob(torch.as_tensor(test.y_test).to(belief.posterior.mean))
    inside = log_p[:, torch.as_tensor(inside_data(test.x_test[:, 0]), device=log_p.device)]
    return {
        "mean_log": -float(gibbs_nll(log_p, prediction.weights)),
        "lppd": float(lppd(log_p, prediction.weights)),
        "lppd_error": float(lppd_error(log_p, prediction.weights)),
        "lppd_bias": float(lppd_bias(log_p, prediction.weights)),
        "mean_log_inside": -float(gibbs_nll(inside, prediction.weights)),
        "lppd_inside": float(lppd(inside, prediction.weights)),
    }


def training_points(data: CurveData, seed: int, count: int = 128) -> dict[str, list[float]]:
    """As many of a seed's training points as a batch has, from the whole range, to be drawn."""
    points = data.training(seed)
    step = max(1, len(points.x_train) // count)
    return {"x": points.x_train[::step, 0].tolist(), "y": points.y_train[::step, 0].tolist()}


def _function_sampler(belief: Belief, draws: int) -> Callable[[Any], Tensor]:
    return lambda x: belief.predict(x, draws).outputs[..., 0]
