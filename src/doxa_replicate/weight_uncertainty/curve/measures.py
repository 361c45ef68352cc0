"""What is read off beliefs about a curve: bands, how they open, what they cover, and how a free energy came down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa.data.sets.curve import Curve
from doxa.predict.belief import Belief
from doxa_replicate.over_seeds import mean

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
OUTSIDE = ((-0.5, -0.25), (1.0, 1.5))  # where a net has nothing to go by
INSIDE = (0.0, 0.5)  # where the training data are


def input_grid(points: int) -> Any:
    return np.linspace(-0.5, 1.5, points, dtype=np.float32)[:, None]


def function_band(x: Any, outputs: Tensor) -> dict[str, Any]:
    """The mean and quantiles of functions [S, B]."""
    levels = torch.tensor(LEVELS, dtype=torch.float64, device=outputs.device)
    quantiles = torch.quantile(outputs.double(), levels, dim=0)
    quantiles_by_level = {f"{level:g}": row.tolist() for level, row in zip(LEVELS, quantiles, strict=True)}
    return {"x": [float(v) for v in x], "mean": outputs.double().mean(0).tolist(), "quantiles": quantiles_by_level}


def inside_data(x: Any) -> Any:
    return (x >= INSIDE[0]) & (x <= INSIDE[1])


def outside_data(x: Any) -> Any:
    return np.logical_or.reduce([(x >= low) & (x <= high) for low, high in OUTSIDE])


def band_widths(functions: Callable[[Any], Tensor]) -> dict[str, float]:
    """The mean inter-quartile range amid the data and away from them, and how many times the one is the other."""
    x = input_grid(401)
    outputs = functions(x).double()
    low, high = torch.quantile(outputs, torch.tensor([0.25, 0.75], dtype=torch.float64, device=outputs.device), dim=0)
    width = (high - low).cpu().numpy()
    iqr_inside, iqr_outside = float(width[inside_data(x[:, 0])].mean()), float(width[outside_data(x[:, 0])].mean())
    return {"iqr_inside": iqr_inside, "iqr_outside": iqr_outside, "iqr_ratio": iqr_outside / iqr_inside}


def coverage(belief: Belief, test_curve: Curve, draws: int) -> dict[str, float]:
    """The share of fresh points amid the data that lie in the central 90 %: of the functions, and with their noise."""
    prediction = belief.predict(test_curve.x_train, draws)
    y = torch.as_tensor(test_curve.y_train).to(belief.posterior.mean)
    functions = prediction.outputs.double()
    levels = torch.tensor([0.05, 0.95], dtype=torch.float64, device=y.device)
    low, high = torch.quantile(functions, levels, dim=0)
    noisy_interval = prediction.quantile(0.05), prediction.quantile(0.95)
    return {
        "functions": float(((y >= low) & (y <= high)).double().mean()),
        "with_noise": float(((y >= noisy_interval[0]) & (y <= noisy_interval[1])).double().mean()),
    }


def thin_curve(values: Sequence[float], max_points: int = 150) -> list[list[float]]:
    """[epoch, value] of so many epochs, evenly, with the first and the last."""
    indices = sorted({round(k) for k in np.linspace(0, len(values) - 1, min(max_points, len(values)))})
    return [[k + 1, float(values[k])] for k in indices]


def variance_of_differences(energy: Sequence[float]) -> dict[str, float]:
    """Var(F_{t+1} − F_t) over all epochs, and over the last third, where its fall no longer counts."""
    steps = np.diff(np.asarray(energy, dtype=np.float64))
    return {
        "all": float(steps.var()),
        "last_third": float(steps[-max(2, len(steps) // 3) :].var()),
    }


def late_variance(values: Sequence[float]) -> float:
    """The variance over the last third of some readings."""
    return float(np.var(values[-max(2, len(values) // 3) :]))


def epochs_until(energy: Sequence[float], threshold: float) -> int:
    """The first epoch in which the free energy, averaged over eleven, is at most the threshold; all, where none is."""
    below = np.flatnonzero(running_mean(energy) <= threshold)
    return int(below[0]) + 1 if len(below) else len(energy)


def running_mean(values: Sequence[float], window: int = 11) -> Any:
    """A running mean, of as many as there are at the ends."""
    array = np.asarray(values, dtype=np.float64)
    window = min(window, len(array))
    counts = np.convolve(np.ones_like(array), np.ones(window), mode="same")
    return np.convolve(array, np.ones(window), mode="same") / counts


def tail_length(energy: Sequence[float]) -> int:
    """Epochs at the end over which the final value is averaged."""
    return max(1, len(energy) // 50)


def mean_curve(curves: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    """[x, mean y] of curves [[x, y], …] at the same places."""
    return [[rows[0][0], mean([row[1] for row in rows])] for rows in zip(*curves, strict=True)]
