"""N(0, 1/fan-in): a prior by which outputs of unit size are expected at any width."""

from __future__ import annotations

import math

import torch
from torch import nn

from doxa.priors.gaussian import Gaussian as GaussianPrior
from doxa.weights.layout import Chooser, lay_out


def by_fan_in(net: nn.Module, random: Chooser | None = None) -> GaussianPrior:
    """N(0, 1/fan-in) for every weight and N(0, 1) for every bias: outputs of unit size at every width.

    Neal (1996), Bayesian learning for neural networks.
    """
    layout, start = lay_out(net, random)
    scale = torch.ones(layout.random, dtype=start.dtype)
    for slot in layout.random_slots:
        if len(slot.shape) > 1:
            scale[slot.span] = math.prod(slot.shape[1:]) ** -0.5
    return GaussianPrior(scale)
