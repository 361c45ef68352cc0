"""Expected values as the document's author drew them: the same draws for every mean and scale of a grid."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from doxa_replicate.contract import ReplicationOptions

MEAN_REACH, LARGEST_SCALE = 5.0, 2.0
KEPT_EVERY = 4  # of the grid's points, in what is kept of a surface


def grid(options: ReplicationOptions) -> tuple[Tensor, Tensor]:
    """μ from −5 to 5 and σ from 0 to 2, 200 of each."""
    count = int(options.by_size(41, 200))
    mean = torch.linspace(-MEAN_REACH, MEAN_REACH, count, dtype=torch.float64)
    return mean, torch.linspace(0, LARGEST_SCALE, count, dtype=torch.float64)


def draw_count(options: ReplicationOptions) -> int:
    return int(options.by_size(1000, 15_000))


def seeds(options: ReplicationOptions) -> list[int]:
    """Of draws: the author had one lot."""
    return options.seed_list(2, 10)


def drawn_surface(f: Callable[[Tensor], Tensor], mean: Tensor, scale: Tensor, draws: int, seed: int) -> Tensor:
    """U(μ, σ) ≈ (1/N) Σ_n f(μ + σ ε_n) [scales, means], with the same ε everywhere."""
    epsilon = torch.randn(draws, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.stack([f(mean + s * epsilon).mean(0) for s in scale])


def thinned_surface(mean: Tensor, scale: Tensor, height: Tensor) -> dict[str, list[float] | list[list[float]]]:
    """Every fourth point of a surface each way, and the last."""
    columns, rows = (sorted({*range(0, len(axis), KEPT_EVERY), len(axis) - 1}) for axis in (mean, scale))
    return {"mean": mean[columns].tolist(), "scale": scale[rows].tolist(), "height": height[rows][:, columns].tolist()}


def even_levels(low: float, high: float, count: int) -> list[float]:
    """So many levels, evenly spread."""
    return [low + (high - low) * k / (count - 1) for k in range(count)]
