"""A committee of beliefs, each learned without one fold of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from doxa.contracts import Likelihood
from doxa.likelihoods import over_draws
from doxa.posteriors.mixture import Mixture
from doxa.predict.belief import Belief
from doxa.random.keys import generator
from doxa.weights.layout import LIKELIHOOD, Layout


def folds(labels: Tensor, count: int, seed: int) -> Tensor:
    """A fold for each row [N], 0 to count − 1, every label spread evenly over them."""
    order = torch.randperm(len(labels), generator=generator((seed, "folds")))
    order = order[labels[order].argsort(stable=True)]
    fold = torch.empty(len(labels), dtype=torch.int64)
    fold[order] = torch.arange(len(labels)) % count
    return fold


def committee(beliefs: Sequence[Belief], likelihood: Likelihood) -> Belief:
    """Several beliefs about one net as one, each as likely as the other, under a likelihood without parameters."""
    first = beliefs[0]
    layout = Layout(tuple(s for s in first.layout.slots if not s.name.startswith(LIKELIHOOD)))
    members = tuple(replace(belief.posterior, mean=belief.posterior.mean[: layout.size]) for belief in beliefs)  # type: ignore[type-var]
    return replace(
        first,
        likelihood=likelihood,
        layout=layout,
        posterior=Mixture(members),
        buffers=tuple(member_buffers for belief in beliefs for member_buffers in belief.buffers),
    )


def best_noise(outputs: Tensor, y: Tensor, weights: Tensor | None = None) -> tuple[float, float]:
    """The standard deviation of y [B, ·] around the draws' outputs [S, B, ·] with the least NLL, and that NLL."""
    distance = (outputs - y.reshape(outputs.shape[1:])).double().flatten(2)
    squares, size = distance.square().sum(2), distance.shape[2]

    def nll(log_scale: Tensor) -> Tensor:
        log_p = -0.5 * squares / (2 * log_scale).exp() - size * (log_scale + 0.5 * math.log(2 * math.pi))
        return -over_draws.log_mean_exp(log_p, weights).mean()

    middle = 0.5 * math.log(float(squares.mean()) / size + 1e-30)
    low, high = middle - 7, middle + 1
    for _ in range(4):  # a grid, then a finer one around its best
        grid = torch.linspace(low, high, 60, dtype=torch.float64)
        scores = torch.stack([nll(g) for g in grid])
        best, gap = int(scores.argmin()), float(grid[1] - grid[0])
        low, high = float(grid[best]) - gap, float(grid[best]) + gap
    return float(grid[best].exp()), float(scores[best])
