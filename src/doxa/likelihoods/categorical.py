"""One of C classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from doxa.errors import BadInput, require_whole
from doxa.likelihoods import over_draws
from doxa.likelihoods.example import Example


@dataclass(frozen=True)
class Categorical:
    """A label among C classes, from logits.

    p(y = c | output) = exp(output_c) / Σ_k exp(output_k)

    Output [..., B, C]; targets [B] of whole numbers 0 … C−1. With several labels a row (tokens, pixels) output is
    [..., B, T, C] with targets [B, T], and a row's log-probability is their sum. `class_axis` counts from the end.
    Bridle (1990), Probabilistic interpretation of feedforward classification network outputs.
    """

    class_axis: int = -1
    discrete: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_whole("class_axis", self.class_axis, least=None)
        if self.class_axis >= 0:
            raise BadInput(f"class_axis counts from the end and must be negative; got {self.class_axis}")

    def parameters(self, output: Tensor) -> dict[str, Tensor]:
        return {}

    def check(self, output: Tensor, y: Tensor) -> Tensor:
        if output.dim() < 2:
            raise BadInput(
                f"the net's output has shape {tuple(output.shape)}; classification needs logits [rows, classes]"
            )
        classes = output.shape[self.class_axis]
        shape = output.movedim(self.class_axis, -1).shape[1:-1]
        if y.dim() == 2 and y.shape[1] == 1 and not shape:
            y = y[:, 0]
        if y.shape[1:] != shape:
            raise BadInput(
                f"targets have shape {tuple(y.shape)}; with outputs of shape {tuple(output.shape)} they must be "
                f"{('rows', *shape)} whole-number labels"
            )
        if y.dtype.is_floating_point or y.dtype == torch.bool:
            raise BadInput(f"targets are {y.dtype}; class labels must be whole numbers: y.long()")
        low, high = int(y.min()), int(y.max())
        if low < 0 or high >= classes:
            raise BadInput(
                f"labels run from {low} to {high}, but the net has {classes} outputs: they must be 0 … {classes - 1}"
            )
        return y.long()

    def log_prob(self, output: Tensor, y: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        log_p = output.movedim(self.class_axis, -1).log_softmax(-1)
        labels = y.expand(log_p.shape[:-1]).unsqueeze(-1)
        picked = log_p.gather(-1, labels).squeeze(-1)
        return picked.flatten(-(y.dim() - 1)).sum(-1) if y.dim() > 1 else picked

    def mean(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return output.softmax(self.class_axis)

    def variance(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        p = self.mean(output, parameters)
        return p * (1 - p)

    def quantile(
        self, output: Tensor, q: float, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> Tensor:
        """Of each class's probability over the draws."""
        return over_draws.quantile(self.mean(output, parameters), q, weights)

    def entropy(
        self, output: Tensor, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Of the averaged classes, and on average of each draw's; their difference is the mutual information.

        Summed over a row's positions, which are independent given the weights.
        """
        p = output.movedim(self.class_axis, -1).softmax(-1)
        mixed = torch.special.entr(over_draws.mean(p, weights)).sum(-1)
        parts = over_draws.mean(torch.special.entr(p).sum(-1), weights)
        return mixed.reshape(len(mixed), -1).sum(1), parts.reshape(len(parts), -1).sum(1)


categorical = Categorical
EXAMPLES = {
    "categorical": (
        Example(Categorical(), outputs=(4,), targets=torch.arange(4)),
        Example(Categorical(-2), outputs=(3, 1), targets=torch.arange(3)[:, None]),
    )
}
