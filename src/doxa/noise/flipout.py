"""Flipout."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.flat import ScalePullback, draw
from doxa.noise.interception import Apply, Site
from doxa.noise.leaves import LeafSegment, Noise
from doxa.noise.source import NoiseSource, signs
from doxa.random.philox import Stream


def fill(segment: LeafSegment, stream: Stream, sign: float) -> None:
    assert segment.second is not None
    draw(segment.second, None, segment.scale, segment.epsilon, segment.rho, stream, segment.span.start, sign)


def rule(apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, source: NoiseSource) -> Tensor:
    output = apply(x, weight, bias)
    flips = signs(source, site.shape(output, site.channel_axis), output)
    if site.weight_noise is None:
        return torch.addcmul(output, flips, apply(torch.zeros_like(x), weight.detach(), site.bias_noise))
    flipped = x * signs(source, site.shape(x, site.channel_axis), x)
    return torch.addcmul(output, flips, apply(flipped, site.weight_noise, site.bias_noise))


flipout = Noise("flipout", ScalePullback.TIMES_EPSILON, fill, rule)
"""One draw of the weights for the batch, its signs flipped at random for every row: rows become uncorrelated.

b = f(x, mean) + r∘f(x∘s, scale·ε),  r, s ∈ {−1, 1};   pull-back: (g_mean, ε·g_δ)

All positions of a row (convolutions, tokens) share its signs, so each row sees one true draw of the weights; where a
net merges rows and positions into one axis, each position counts as a row.
Wen et al. (2018), Flipout: efficient pseudo-independent weight perturbations on mini-batches.
"""
