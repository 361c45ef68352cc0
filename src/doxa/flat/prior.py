"""The slopes of −log p, as a step adds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from doxa.kernels import kernel, pointer


class PriorGradientKind(IntEnum):
    """Where the slopes of −log p come from, while a step is taken."""

    NONE = 0
    LINEAR_PER_NET = 1  # one centre and precision a member
    LINEAR_PER_WEIGHT = 2  # one a weight
    MIXTURE = 3  # of two Gaussians, at the draw


@dataclass(frozen=True)
class PriorGradients:
    """The slopes of −log p of every member's prior, as the kernels take them."""

    kind: PriorGradientKind = PriorGradientKind.NONE
    coefficients: Tensor | None = None  # [K, 4]: centre and precision; of a mixture centre, two precisions, log-odds
    centres: Tensor | None = None  # [K, n]
    precisions: Tensor | None = None  # [K, n]

    def columns(self, span: slice) -> PriorGradients:
        """Those of a stretch of the weights."""
        columns = [None if t is None else t[:, span] for t in (self.centres, self.precisions)]
        return PriorGradients(self.kind, self.coefficients, *columns)

    def centre_and_precision(self) -> tuple[Tensor | float, Tensor]:
        """Centres and precisions, as columns [K, 1] or rows [K, n]."""
        if self.kind is PriorGradientKind.LINEAR_PER_NET:
            assert self.coefficients is not None
            return self.coefficients[:, :1], self.coefficients[:, 1:2]
        assert self.precisions is not None
        return 0.0 if self.centres is None else self.centres, self.precisions


def mixture_slope(
    w: Tensor, centre: float | Tensor, wide: float | Tensor, narrow: float | Tensor, odds: float | Tensor
) -> Tensor:
    """d log p(w)/dw for a mixture of Gaussians of two precisions, the wide one exp(odds) times as likely at the centre.

    The share of the narrow one at w is a sigmoid of the log-ratio of the two: nothing overflows, and nothing cancels.
    """
    numbers = centre, wide, narrow, odds
    compiled: Callable[..., None] | None = None
    if not any(isinstance(v, Tensor) for v in numbers) and w.is_contiguous():
        compiled = kernel("doxa_mixture_slope", w)
    if compiled is not None:
        slope = torch.empty_like(w)
        compiled(w.numel(), *numbers, pointer(w), pointer(slope))
        return slope
    distance = w - centre
    narrow_share = (distance.square().mul_(-0.5 * (narrow - wide)) - odds).sigmoid_()
    return distance.mul_(narrow_share.mul_(narrow - wide).add_(wide)).neg_()
