"""Yes or no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.errors import BadInput
from doxa.likelihoods import over_draws
from doxa.likelihoods.example import Example


@dataclass(frozen=True)
class Bernoulli:
    """Independent yes-or-no targets, from one logit each.

    p(y = 1 | output) = 1 / (1 + exp(−output))

    Output [..., B, D] or [..., B]; targets of 0 and 1 in the shape of a row's output ([B] for D = 1 too).
    Cox (1958), The regression analysis of binary sequences.
    """

    discrete: ClassVar[bool] = True

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
        if not bool(((y == 0) | (y == 1)).all()):
            raise BadInput(f"targets run from {float(y.min()):g} to {float(y.max()):g}; bernoulli takes only 0 and 1")
        return y.to(output.dtype)

    def log_prob(self, output: Tensor, y: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        log_p = -F.binary_cross_entropy_with_logits(output, y.expand_as(output), reduction="none")
        return log_p.flatten(-(y.dim() - 1)).sum(-1) if y.dim() > 1 else log_p

    def mean(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return output.sigmoid()

    def variance(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return output.sigmoid() * (-output).sigmoid()

    def quantile(
        self, output: Tensor, q: float, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> Tensor:
        """Of each probability over the draws."""
        return over_draws.quantile(output.sigmoid(), q, weights)

    def entropy(
        self, output: Tensor, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Of the averaged probability, and on average of each draw's; their difference is the mutual information.

        Summed over a row's targets, which are independent given the weights.
        """
        p = output.sigmoid()
        mixed = _binary_entropy(over_draws.mean(p, weights))
        parts = over_draws.mean(_binary_entropy(p), weights)
        return mixed.reshape(len(mixed), -1).sum(1), parts.reshape(len(parts), -1).sum(1)


def _binary_entropy(p: Tensor) -> Tensor:
    return torch.special.entr(p) + torch.special.entr(1 - p)


bernoulli = Bernoulli
EXAMPLES = {"bernoulli": (Example(Bernoulli(), outputs=(1,), targets=torch.tensor([[0.0], [1.0]])),)}
