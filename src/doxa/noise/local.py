"""Local reparameterisation: the noise of weights, moved to where it is felt.

A linear map b_j = Σ_i x_i w_ij + c_j of independent Gaussian weights is Gaussian itself, and independent for different
outputs j:

    b_j ~ N(Σ_i x_i m_ij + m_j, Σ_i x_i² s_ij² + s_j²)

The rest of the net sees nothing of the weights but b, so b may be drawn instead, afresh for every row, at the price of
a second product. It pays by what it does to a batch. With L_i the loss of row i, the mean of B of them has

    variance = Var[L_i]/B + (1 − 1/B) Cov[L_i, L_j]

and under one shared draw the second term does not fall with B. Here rows are independent, and it is zero (Kingma,
Salimans & Welling, 2015).

The pull-back: autograd hands back g_m and g_v at the leaves m and v = s², where ∂b/∂v = x²ζ/2√f(x², v) was its
business; v = s² gives ∂L/∂s = 2s g_v. No ε of weights is drawn or kept at all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.flat import ScalePullback, fill_scale
from doxa.noise.interception import Apply, Site
from doxa.noise.leaves import LeafSegment, Noise
from doxa.noise.source import NoiseSource, normals
from doxa.random.philox import Stream


def fill(segment: LeafSegment, stream: Stream, sign: float) -> None:
    """v = s². The variance and not the scale is the leaf: it is what the second product is linear in."""
    assert segment.second is not None
    if segment.rho is None:
        assert segment.scale is not None
        torch.square(segment.scale, out=segment.second)
    else:
        fill_scale(segment.second, segment.rho, squared=True)


def rule(apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, source: NoiseSource) -> Tensor:
    """f(x, m) + √f(x², v)·ζ, the noise of the bias among that of the weights."""
    output = apply(x, weight, bias)
    if site.weight_noise is None:  # the bias alone is random: zeros leave its variance, in the output's shape
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
