"""The Wasserstein distance of two distributions of real numbers, from draws of both."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.judge.metrics.checks import require_no_nan, require_not_empty

NUMBERS_AT_ONCE = 1 << 22


def wasserstein_2(
    values: Tensor, others: Tensor, weights: Tensor | None = None, other_weights: Tensor | None = None
) -> Tensor:
    """How far draws must be moved to become the others, at every point by itself [...]; in the units of the values.

    W₂² = ∫₀¹ (F⁻¹(u) − G⁻¹(u))² du

    values [S, ...] and others [S', ...], with weights [S] and [S'] where draws do not count alike. Exact for the draws;
    for what they were drawn from it is biased upwards, by a few spreads / √S. For two Gaussians it is √((μ − μ')² + (σ
    − σ')²). Villani (2009), Optimal transport, old and new; Peyré & Cuturi (2019), Computational optimal transport,
    section 2.6.
    """
    for name, tensor in (("values", values), ("others", others)):
        require_not_empty(name, tensor)
        require_no_nan(name, tensor)
    if values.dim() < 1 or values.shape[1:] != others.shape[1:]:
        raise BadInput(
            f"values have shape {tuple(values.shape)} and others {tuple(others.shape)}; both must be [draws, ...] with "
            "the same points behind their first axis"
        )
    columns, other_columns = (t.double().reshape(len(t), -1).T for t in (values, others))
    step = max(1, NUMBERS_AT_ONCE // (len(values) + len(others)))
    parts = [
        _squared_distance(part, other_part, weights, other_weights)
        for part, other_part in zip(columns.split(step), other_columns.split(step), strict=True)
    ]
    return torch.cat(parts).sqrt().reshape(values.shape[1:])


def _squared_distance(a: Tensor, b: Tensor, a_weights: Tensor | None, b_weights: Tensor | None) -> Tensor:
    """W₂² of rows of draws [points, S] and [points, S']: both quantile functions are steps, constant between all
    jumps."""
    (a, a_upto), (b, b_upto) = _sorted_with_mass(a, a_weights), _sorted_with_mass(b, b_weights)
    jumps = torch.cat([a_upto, b_upto], 1).sort(1).values
    shares = jumps.diff(dim=1, prepend=torch.zeros_like(jumps[:, :1]))
    gap = a.gather(1, torch.searchsorted(a_upto, jumps)) - b.gather(1, torch.searchsorted(b_upto, jumps))
    return (shares * gap.square()).sum(1)


def _sorted_with_mass(values: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Draws in order [points, S], and how much lies up to each of them, 1 at the last."""
    ordered, order = values.sort(1)
    count = values.shape[1]
    shares = (torch.ones(count) if weights is None else weights).to(values)
    upto = shares[order].cumsum(1)
    upto = upto / upto[:, -1:]
    upto[:, -1] = 1
    return ordered, upto.contiguous()
