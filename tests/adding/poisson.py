"""Counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.errors import BadInput
from doxa.likelihoods import over_draws
from doxa.likelihoods.example import Example

MOST = 2**24  # counts beyond are not whole numbers of single precision


@dataclass(frozen=True)
class Poisson:
    """Counts of what happens at a rate that the net tells.

    p(y | output) = rateʸ exp(−rate) / y!,  rate = 10⁻⁶ + softplus(output)

    Output [..., B, D]; targets [B, D] of whole numbers from 0 up, or [B] for D = 1.
    Nelder & Wedderburn (1972), Generalized linear models.
    """

    discrete: ClassVar[bool] = False

    def parameters(self, output: Tensor) -> dict[str, Tensor]:
        return {}

    def check(self, output: Tensor, y: Tensor) -> Tensor:
        if y.dim() == 1 and output.dim() == 2 and output.shape[1] == 1:
            y = y[:, None]
        if y.shape[1:] != output.shape[1:]:
            raise BadInput(
                f"targets have shape {tuple(y.shape)}; with outputs of shape {tuple(output.shape)} they must be "
                f"{('rows', *output.shape[1:])}"
            )
        counts = y.to(output.dtype)
        if not bool(((counts >= 0) & (counts == counts.round())).all()):
            raise BadInput("targets of poisson are counts: whole numbers from 0 up")
        return counts

    def log_prob(self, output: Tensor, y: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        rate = self.mean(output, parameters)
        log_p = y * rate.log() - rate - (y + 1).lgamma()
        return log_p.flatten(-(y.dim() - 1)).sum(-1)

    def mean(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return 1e-6 + F.softplus(output)

    def variance(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return self.mean(output, parameters)

    def quantile(
        self, output: Tensor, q: float, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> Tensor:
        """Of y itself: the smallest count that the mixture does not exceed with a probability of q, by bisection."""
        rate = self.mean(output, parameters)
        low, high = torch.full_like(rate[0], -1), torch.full_like(rate[0], MOST)
        while bool((high - low > 1).any()):
            middle = ((low + high) / 2).floor()
            below = over_draws.mean(torch.special.gammaincc(middle + 1, rate), weights) < q
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return high

    def entropy(
        self, output: Tensor, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """By sums over all counts that matter; over a row's targets they are added."""
        rate = self.mean(output, parameters).flatten(2)  # [S, B, D]
        largest = float(rate.max())
        mixed, parts = torch.zeros_like(rate[0]), torch.zeros_like(rate)
        for count in range(int(largest + 12 * largest**0.5 + 20)):
            p = torch.exp(count * rate.log() - rate - math.lgamma(count + 1))
            mixed += torch.special.entr(over_draws.mean(p, weights))
            parts += torch.special.entr(p)
        return mixed.sum(1), over_draws.mean(parts, weights).sum(1)


poisson = Poisson
EXAMPLES = {"poisson": (Example(Poisson(), outputs=(1,), targets=torch.arange(60.0)[:, None]),)}
