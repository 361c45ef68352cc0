"""Passes over flat vectors: what a training step does besides running the net.

Each is stated in torch, and done in one pass by a C kernel where the vectors are float32 in the CPU's memory and a
compiler was found. The two agree to rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.native import at, kernel, written
from doxa.randomness import Key, fill_normal, seed_of

# No posterior of use has a |rho| this large: its scale would be 80, or 1e-35.
FAR = 80.0


def fill_scale(scale: Tensor, rho: Tensor) -> Tensor:
    """scale = softplus(rho), for training: rho is held within ±FAR, so that 1/scale is finite too."""
    compiled = kernel("doxa_fill_scale", scale, rho)
    if compiled is None:
        return torch.clamp(rho, -FAR, FAR, out=scale).exp_().log1p_()
    compiled(rho.numel(), at(rho), at(scale))
    written(scale)
    return scale


def draw(
    w: Tensor, mean: Tensor, scale: Tensor, epsilon: Tensor, rho: Tensor | None, key: Key, start: int, sign: float
) -> None:
    """epsilon = sign · normals, w = mean + scale · epsilon; before it scale = softplus(rho) where rho is given."""
    compiled = kernel("doxa_draw", w, mean, scale, epsilon, rho)
    if compiled is not None:
        compiled(seed_of(key), start, w.numel(), sign, at(mean), at(rho), at(scale), at(epsilon), at(w))
        written(w, epsilon, *([] if rho is None else [scale]))
        return
    if rho is not None:
        fill_scale(scale, rho)
    fill_normal(epsilon, key, start, sign)
    torch.addcmul(mean, scale, epsilon, out=w)


def finish(
    mean: Tensor,
    scale: Tensor,
    rho: Tensor | None,
    weight: float,
    centre: float,
    precision: float,
    by_mean: Tensor,
    by_scale: Tensor,
    holds_epsilon: bool,
) -> None:
    """Add weight times the slopes of precision/2 ((mean − centre)² + scale²) − log scale to two gradients, in place.

    That by the scale becomes one by rho where `rho` is given; where it `holds_epsilon`, the ε of the draw, it is first
    pulled back from the gradient by the mean.
    """
    compiled = kernel("doxa_finish", mean, scale, rho, by_mean, by_scale)
    if compiled is not None:
        numbers = mean.numel(), holds_epsilon, weight, centre, precision
        compiled(*numbers, at(mean), at(scale), at(rho), at(by_mean), at(by_scale))
        written(by_mean, by_scale)
        return
    if holds_epsilon:
        by_scale.mul_(by_mean)
    if precision:
        by_mean.add_(mean if centre == 0 else mean - centre, alpha=weight * precision)
        by_scale.add_(scale, alpha=weight * precision)
    by_scale.addcdiv_(torch.ones((), dtype=scale.dtype, device=scale.device), scale, value=-weight)
    if rho is not None:
        by_scale.mul_(rho.sigmoid())


def mixture_slope(w: Tensor, centre: float | Tensor, wide: float, narrow: float, odds: float) -> Tensor:
    """d log p(w)/dw for a mixture of Gaussians of two precisions, the wide one exp(odds) times as likely at the centre.

    The share of the narrow one at w is a sigmoid of the log-ratio of the two: nothing overflows, and nothing cancels.
    """
    compiled = None if isinstance(centre, Tensor) else kernel("doxa_mixture_slope", w)
    if compiled is not None:
        slope = torch.empty_like(w)
        compiled(w.numel(), centre, wide, narrow, odds, at(w), at(slope))
        return slope
    distance = w - centre
    idle = distance.square().mul_(-0.5 * (narrow - wide)).sub_(odds).sigmoid_()
    return distance.mul_(idle.mul_(narrow - wide).add_(wide)).neg_()
