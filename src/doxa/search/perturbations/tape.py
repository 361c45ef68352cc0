"""What linear maps and convolutions meet in a pass with noise of rows, and the way back to their weights alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.noise.interception import Apply, Site
from doxa.noise.source import NoiseSource, normals


@dataclass(frozen=True)
class RecordedMap:
    """One map of a pass: mean and variance of its outputs, as functions of leaves, and the noise of rows in them."""

    name: str
    mean: Tensor
    variance: Tensor
    zeta: Tensor | None = None


@dataclass
class Tape:
    """Turns a net's maps into noisy ones and notes what they met.

    z = m + √v ζ

    With one scale for all of a map's weights, `squares` has that scale's square by the map's name, and one product
    with a single row of ones is all that the variance takes: v = scale² (‖a‖² + 1).
    """

    squares: Mapping[str, Tensor] | None
    recorded: list[RecordedMap] = field(default_factory=list)

    def rule(
        self, apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, source: NoiseSource
    ) -> Tensor:
        x = x.detach()  # nothing goes back beyond this map
        mean = apply(x, weight, bias)
        variance = self._variance(apply, x, weight, site)
        deviation = variance.detach().clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
        zeta = normals(source, tuple(mean.shape), mean)
        self.recorded.append(RecordedMap(site.name, mean, variance))
        return torch.addcmul(mean.detach(), deviation, zeta)

    def _variance(self, apply: Apply, x: Tensor, weight: Tensor, site: Site) -> Tensor:
        square = None if self.squares is None else self.squares[site.name]
        if site.weight_noise is None:
            noise = site.bias_noise if square is None else square.expand_as(_not_none(site.bias_noise))
            return apply(torch.zeros_like(x), weight.detach(), noise)
        if square is None:
            return apply(x * x, site.weight_noise, site.bias_noise)
        ones = weight.new_ones(1, *weight.shape[1:])
        bias_variance = 0.0 if site.bias_noise is None else square
        return torch.add(bias_variance, apply(x * x, ones, None) * square)


def _not_none(value: Tensor | None) -> Tensor:
    assert value is not None
    return value


def backpropagate_row_weights(recorded: Sequence[RecordedMap], weights: Tensor) -> dict[str, Tensor]:
    """Send weights of rows [n, B] back to the leaves of each map; the slopes by the log of one scale for all of a map.

    ∂log p(z)/∂m = ζ/√v,  ∂log p(z)/∂v = (ζ² − 1)/2v;  by log scale, where v ∝ scale²,  ζ² − 1
    """
    roots: list[Tensor] = []
    root_gradients: list[Tensor] = []
    by_log: dict[str, Tensor] = {}
    for m in recorded:
        zeta = _not_none(m.zeta)
        if m.mean.shape[:2] != weights.shape:
            raise BadInput(
                f"the rows of {m.name} are not those of the data ({m.mean.shape[1]} for {weights.shape[1]}), so that "
                "no row's loss is its own: choose doxa.search.weight_space() or low_rank() for this net"
            )
        w = weights.view(*weights.shape, *[1] * (m.mean.dim() - 2))
        v = m.variance.detach().clamp_min(torch.finfo(m.variance.dtype).tiny)
        roots.append(m.mean)
        root_gradients.append(w * zeta * v.rsqrt())
        if m.variance.requires_grad:
            roots.append(m.variance)
            root_gradients.append(w * (zeta.square() - 1) / (2 * v))
        else:
            by_log[m.name] = (w * zeta.square()).sum() - weights.sum() * m.mean[0, 0].numel()
    torch.autograd.backward(roots, root_gradients)
    return by_log
