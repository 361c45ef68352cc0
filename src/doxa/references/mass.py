"""A mass for each weight: heavy where the posterior is narrow, so that all weights move in the same time."""

from __future__ import annotations

import torch
from torch import Tensor

FIRST_WINDOW = 15  # trajectories; each one after it is twice as long


def window_ends(warmup: int) -> list[int]:
    """Where the windows of a warm-up end, in which variances are taken: after 15 % of it, before its last 30 %.

    The first 15 trajectories, then twice as many each time, the last window with what is left; none in a short warm-up.
    Carpenter et al. (2017), Stan: a probabilistic programming language.
    """
    start, stop = round(0.15 * warmup), warmup - round(0.3 * warmup)
    ends: list[int] = []
    length = FIRST_WINDOW
    while start + length <= stop:
        start = stop if start + 3 * length > stop else start + length
        ends.append(start)
        length *= 2
    return ends


class DiagonalMass:
    """The inverse masses [P], and the variances within K chains that they are to be.

    M⁻¹ = median over chains of (n s² + 5 · 10⁻³ s̄²) / (n + 5)

    where s² is a chain's variance over n states, and s̄² its geometric mean over weights.
    A chain has a variance about its own middle: chains in different modes do not make each other's weights light. One
    mass is everybody's, and each chain counts alike, so that one which is lost does not decide. Welford (1962);
    Carpenter et al. (2017), Stan: a probabilistic programming language.
    """

    def __init__(self, position: Tensor) -> None:
        self.inverse_mass = torch.ones_like(position[0])
        self.mean, self.squares = torch.zeros_like(position), torch.zeros_like(position)
        self.count = torch.zeros((), dtype=torch.float64, device=position.device)

    def observe(self, position: Tensor) -> None:
        """Take note of a state [K, P]."""
        self.count += 1
        difference = position - self.mean
        self.mean += difference / self.count.to(position)
        self.squares.addcmul_(difference, position - self.mean)

    def adopt(self) -> None:
        """Make masses of what was seen since the last time."""
        count = self.count.to(self.squares)
        variance = self.squares / (count - 1)
        typical = variance.log().mean(1, keepdim=True).exp()
        shrunk = (count * variance + 5e-3 * typical) / (count + 5)
        middle = shrunk.median(0).values
        self.inverse_mass.copy_(torch.where((middle > 0) & middle.isfinite(), middle, self.inverse_mass))
        for tensor in (self.mean, self.squares, self.count):
            tensor.zero_()

    def tensors(self) -> dict[str, Tensor]:
        """All that it remembers, at addresses that do not change."""
        return {"inverse_mass": self.inverse_mass, "mean": self.mean, "squares": self.squares, "count": self.count}
