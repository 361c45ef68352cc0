"""A net whose outputs are in the units of the data."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Rescaled(nn.Module):
    """Any net with outputs of about unit size, stretched and moved.

    output = centre + scale · net(x)

    So that weights, prior and learning rate are those of a problem of unit size, while noise, NLL and predictions are
    in the units of the target.
    """

    def __init__(self, net: nn.Module, centre: float, scale: float) -> None:
        if not 0 < scale < float("inf"):
            raise ValueError(f"scale must be a positive, finite number; got {scale}")
        super().__init__()
        self.net = net
        self.register_buffer("centre", torch.tensor(float(centre)))
        self.register_buffer("scale", torch.tensor(float(scale)))

    def forward(self, x: Tensor) -> Tensor:
        return self.centre + self.scale * self.net(x)
