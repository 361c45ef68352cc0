"""How a policy sees: observations less their mean, over their spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

FAR = 5.0  # spreads from the mean, beyond which an observation counts as this far away
SMALLEST = 1e-8  # a variance, beside which that of an observation that never changes is nothing


@dataclass(frozen=True)
class Sight:
    """The mean and variance of all observations so far.

    o ↦ (o − mean)/√variance, cut at ±5

    Statistics of many observations are joined with those of more by count, mean and sum of squared deviations.
    Chan, Golub & LeVeque (1983), Algorithms for computing the sample variance.
    """

    count: int
    mean: Tensor  # [*observation], in double precision
    squares: Tensor  # [*observation]: Σ (o − mean)²

    @property
    def variance(self) -> Tensor:
        return self.squares / self.count if self.count else torch.ones_like(self.mean)

    @property
    def spread(self) -> Tensor:
        """What observations are divided by; before the first one, and where none differs from another, 1."""
        found = self.variance
        return torch.where(found > SMALLEST, found, 1.0).sqrt()

    def joined(self, other: Sight) -> Sight:
        """The statistics of both.

        mean = mean_a + δ n_b/n,  squares = squares_a + squares_b + δ² n_a n_b/n,  δ = mean_b − mean_a
        """
        count = self.count + other.count
        if not count:
            return self
        away = other.mean - self.mean
        mean = self.mean + away * (other.count / count)
        return Sight(count, mean, self.squares + other.squares + away.square() * (self.count * other.count / count))


def blank(shape: tuple[int, ...]) -> Sight:
    """Nothing seen yet: observations are left as they are."""
    return Sight(0, torch.zeros(shape, dtype=torch.float64), torch.zeros(shape, dtype=torch.float64))


class Watcher:
    """Takes the statistics of observations as they come; sums are of distances from about where the mean will be."""

    def __init__(self, near: Sight) -> None:
        self.count, self.near = 0, near.mean.numpy().copy()
        self.moved = near.count > 0
        self.total, self.squares = np.zeros_like(self.near), np.zeros_like(self.near)

    def see(self, observations: NDArray[np.float64]) -> None:
        """Of rows [n, *observation]."""
        if not self.moved:
            self.near, self.moved = observations.mean(0), True
        away = observations - self.near
        self.count += len(away)
        self.total += away.sum(0)
        self.squares += np.einsum("n...,n...->...", away, away)

    @property
    def sight(self) -> Sight:
        many = max(1, self.count)
        mean = torch.from_numpy(self.near + self.total / many)
        return Sight(self.count, mean, torch.from_numpy(self.squares - self.total**2 / many).clamp_min(0))


class Normalise(nn.Module):
    """A sight as a plain layer, the first of a policy."""

    mean: Tensor
    spread: Tensor

    def __init__(self, sight: Sight, like: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", sight.mean.to(like))
        self.register_buffer("spread", sight.spread.to(like))

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.mean) / self.spread).clamp(-FAR, FAR)


class Seeing(nn.Module):
    """A net that remembers behind a sight: from observations and a state to outputs and a state."""

    def __init__(self, sight: Sight, net: nn.Module, like: Tensor) -> None:
        super().__init__()
        self.sight, self.net = Normalise(sight, like), net

    def forward(self, x: Tensor, *state: Any) -> Any:
        return self.net(self.sight(x), *state)
