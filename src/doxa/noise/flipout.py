"""Flipout."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.noise.interception import Apply, Site
from doxa.noise.leaves import Noise
from doxa.randomness import signs


def second(scale: Tensor, epsilon: Tensor | None) -> Tensor:
    assert epsilon is not None
    return scale * epsilon


def pull_back(gradient: Tensor, scale: Tensor, epsilon: Tensor | None) -> Tensor:
    assert epsilon is not None
    return gradient * epsilon


def rule(apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, sign: float) -> Tensor:
    output = apply(x, weight, bias)
    flips = signs(site.shape(output, site.channel_axis), output)
    if site.weight_noise is None:
        return output + flips * apply(torch.zeros_like(x), weight.detach(), site.bias_noise)
    flipped = x * signs(site.shape(x, site.channel_axis), x)
    return output + flips * apply(flipped, site.weight_noise, site.bias_noise)


flipout = Noise("flipout", second, pull_back, rule)
"""One draw of the weights for the batch, its signs flipped at random for every row: rows become uncorrelated.

b = f(x, mean) + r∘f(x∘s, scale·ε),  r, s ∈ {−1, 1};   pull-back: (g_mean, ε·g_δ)

All positions of a row (convolutions, tokens) share its signs, so each row sees one true draw of the weights; where a
net merges rows and positions into one axis, each position counts as a row.
Wen et al. (2018), Flipout: efficient pseudo-independent weight perturbations on mini-batches.
"""
