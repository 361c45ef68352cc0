"""How a policy sees: observations less their mean, over their spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

CLIP_AT = 5.0  # spreads from the mean, beyond which an observation counts as this far away
MIN_VARIANCE = 1e-8  # a variance, beside which that of an observation that never changes is nothing


@dataclass(frozen=True)
class ObservationNormalizer:
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
        variance = self.variance
        return torch.where(variance > MIN_VARIANCE, variance, 1.0).sqrt()

    def merge(self, other: ObservationNormalizer) -> ObservationNormalizer:
        """The statistics of both.

        mean = mean_a + δ n_b/n,  squares = squares_a + squares_b + δ² n_a n_b/n,  δ = mean_b − mean_a
        """
        count = self.count + other.count
        if not count:
            return self
        difference = other.mean - self.mean
        mean = self.mean + difference * (other.count / count)
        return ObservationNormalizer(
            count, mean, self.squares + other.squares + difference.square() * (self.count * other.count / count)
        )


def empty_normalizer(shape: tuple[int, ...]) -> ObservationNormalizer:
    """Nothing seen yet: observations are left as they are."""
    return ObservationNormalizer(0, torch.zeros(shape, dtype=torch.float64), torch.zeros(shape, dtype=torch.float64))


class ObservationStatistics:
    """Takes the statistics of observations as they come; sums are of distances from about where the mean will be."""

    def __init__(self, offset: ObservationNormalizer) -> None:
        self.count, self.offset = 0, offset.mean.numpy().copy()
        self.has_offset = offset.count > 0
        self.total, self.squares = np.zeros_like(self.offset), np.zeros_like(self.offset)

    def update(self, observations: NDArray[np.float64]) -> None:
        """Of rows [n, *observation]."""
        if not self.has_offset:
            self.offset, self.has_offset = observations.mean(0), True
        shifted = observations - self.offset
        self.count += len(shifted)
        self.total += shifted.sum(0)
        self.squares += np.einsum("n...,n...->...", shifted, shifted)

    @property
    def normalizer(self) -> ObservationNormalizer:
        divisor = max(1, self.count)
        mean = torch.from_numpy(self.offset + self.total / divisor)
        return ObservationNormalizer(
            self.count, mean, torch.from_numpy(self.squares - self.total**2 / divisor).clamp_min(0)
        )


class Normalise(nn.Module):
    """A normalizer as a plain layer, the first of a policy."""

    mean: Tensor
    spread: Tensor

    def __init__(self, normalizer: ObservationNormalizer, like: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", normalizer.mean.to(like))
        self.register_buffer("spread", normalizer.spread.to(like))

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.mean) / self.spread).clamp(-CLIP_AT, CLIP_AT)


class NormalisedRecurrentNet(nn.Module):
    """A net that remembers behind a normalizer: from observations and a state to outputs and a state."""

    def __init__(self, normalizer: ObservationNormalizer, net: nn.Module, like: Tensor) -> None:
        super().__init__()
        self.sight, self.net = Normalise(normalizer, like), net

    def forward(self, x: Tensor, *state: Any) -> Any:
        return self.net(self.sight(x), *state)
