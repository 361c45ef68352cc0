"""Local reparameterisation."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.flat import ScalePullback, fill_scale
from doxa.noise.interception import Apply, Site
from doxa.noise.leaves import LeafSegment, Noise
from doxa.noise.source import NoiseSource, normals
from doxa.random.philox import Stream


def fill(segment: LeafSegment, stream: Stream, sign: float) -> None:
    assert segment.second is not None
    if segment.rho is None:
        assert segment.scale is not None
        torch.square(segment.scale, out=segment.second)
    else:
        fill_scale(segment.second, segment.rho, squared=True)


def rule(apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, source: NoiseSource) -> Tensor:
    output = apply(x, weight, bias)
    if site.weight_noise is None:
        variance = apply(torch.zeros_like(x), weight.detach(), site.bias_noise)
    else:
        variance = apply(x * x, site.weight_noise, site.bias_noise)
    # The root's slope at zero is infinite: a row of zeros would make it NaN. Below `tiny` nothing is left to learn.
    deviation = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
    return torch.addcmul(output, deviation, normals(source, tuple(output.shape), output))


local = Noise("local", ScalePullback.TIMES_TWICE_SCALE, fill, rule, draws_weights=False)
"""The noise of each activation drawn directly, afresh for every row: gradients of far less variance.

b = f(x, mean) + √f(x², scale²)·ζ,  ζ ~ N(0, 1);   pull-back: (g_mean, 2·scale·g_v)

Exact for linear maps on one vector a row. Over several positions of a row (convolutions, tokens) each activation keeps
its mean and variance, and the correlation between positions is dropped; flipout keeps it.
Kingma, Salimans & Welling (2015), Variational dropout and the local reparameterization trick.
"""
