"""Local reparameterisation."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.noise.interception import Apply, Site
from doxa.noise.leaves import Noise


def second(scale: Tensor, epsilon: Tensor | None) -> Tensor:
    return scale.square()


def pull_back(gradient: Tensor, scale: Tensor, epsilon: Tensor | None) -> Tensor:
    return gradient * scale * 2


def rule(apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, sign: float) -> Tensor:
    output = apply(x, weight, bias)
    if site.weight_noise is None:
        variance = apply(torch.zeros_like(x), weight.detach(), site.bias_noise)
    else:
        variance = apply(x * x, site.weight_noise, site.bias_noise)
    # The root's slope at zero is infinite: a row of zeros would make it NaN. Below `tiny` nothing is left to learn.
    deviation = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
    return output + sign * deviation * torch.randn_like(output)


local = Noise("local", second, pull_back, rule, draws_weights=False)
"""The noise of each activation drawn directly, afresh for every row: gradients of far less variance.

b = f(x, mean) + √f(x², scale²)·ζ,  ζ ~ N(0, 1);   pull-back: (g_mean, 2·scale·g_v)

Exact for linear maps on one vector a row. Over several positions of a row (convolutions, tokens) each activation keeps
its mean and variance, and the correlation between positions is dropped; flipout keeps it.
Kingma, Salimans & Welling (2015), Variational dropout and the local reparameterization trick.
"""
