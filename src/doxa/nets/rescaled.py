"""A net whose outputs are in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Rescaled(nn.Module):
    """Any net with outputs of about unit size, stretched and moved.

    output = centre + scale · net(x)

    So that weights, prior and learning rate are those of a problem of unit size, while noise, NLL and predictions are
    in the units of the target. Centre and scale are one number for all outputs, or one for each.
    """

    def __init__(self, net: nn.Module, centre: float | Sequence[float], scale: float | Sequence[float]) -> None:
        centres, scales = (torch.tensor(v, dtype=torch.get_default_dtype()) for v in (centre, scale))
        if not bool(((scales > 0) & scales.isfinite()).all()):
            raise ValueError(f"scale must be a positive, finite number; got {scale}")
        super().__init__()
        self.net = net
        self.register_buffer("centre", centres)
        self.register_buffer("scale", scales)

    def forward(self, x: Tensor) -> Tensor:
        return self.centre + self.scale * self.net(x)
