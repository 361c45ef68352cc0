"""Flipout: one perturbation of the weights, made into as many as there are rows by signs.

δ = s∘ε is symmetric about zero and its entries are independent: with signs r, t that do not depend on it, δ∘(r tᵀ) is
distributed as δ. Row n with signs r_n, t_n of its own therefore sees a true draw m + δ∘(r_n t_nᵀ), and two rows' draws
are uncorrelated, as the mean of r_n t_nᵀ∘r_k t_kᵀ is zero: what the rows share, ε, falls out of the covariance that
keeps shared noise from shrinking with the batch. A product for each row is not needed, for signs pass through it,

    f(x, δ∘(r tᵀ)) = r∘f(x∘t, δ)

and one product with δ serves the batch. It holds at all positions of a row together, where drawing activations would
make positions independent. The pull-back: δ = s∘ε gives ∂L/∂s = ε g_δ; signs have no slope.
"""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.flat import ScalePullback, draw
from doxa.noise.interception import Apply, Site
from doxa.noise.leaves import LeafSegment, Noise
from doxa.noise.source import NoiseSource, signs
from doxa.random.philox import Stream


def fill(segment: LeafSegment, stream: Stream, sign: float) -> None:
    """δ = s∘ε: a draw about zero. An antithetic one turns ε round and keeps the signs, which would turn it back."""
    assert segment.second is not None
    draw(segment.second, None, segment.scale, segment.epsilon, segment.rho, stream, segment.span.start, sign)


def rule(apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, source: NoiseSource) -> Tensor:
    """f(x, m) + r∘f(x∘t, δ), the bias's δ among them: it has the sign of its output."""
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
