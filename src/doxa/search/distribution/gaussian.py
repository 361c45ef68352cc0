"""Where the search looks: a Gaussian over one flat vector, with a scale for every weight or one for many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from doxa.posteriors.mean_field import expand_groups, sum_groups
from doxa.weights.layout import Layout


@dataclass(frozen=True)
class SearchDistribution:
    """The search distribution.

    p(w | mean, scale) = ∏ᵢ N(wᵢ; meanᵢ, scale²_g(i)),  w = mean + scale ∘ ε

    One scale a weight is the separable Gaussian; one for each of `groups`, runs of neighbouring weights, the layer-wise
    one; one for all the isotropic one. With `relative` each weight's own factor is part of its scale.
    """

    mean: Tensor  # [P]
    scale: Tensor  # [G]
    groups: tuple[int, ...] | None = None
    relative: Tensor | None = None  # [P]

    @property
    def counts(self) -> Tensor:
        """[G]: how many weights share each scale."""
        return torch.ones_like(self.scale) if self.groups is None else self.scale.new_tensor(self.groups)

    @cached_property
    def scales(self) -> Tensor:
        """[P]: the scale of every weight."""
        group_scales = expand_groups(self.scale, self.groups)
        return group_scales if self.relative is None else group_scales * self.relative

    @property
    def shared(self) -> bool:
        """Whether all weights of a group have one scale."""
        return self.groups is not None and self.relative is None

    def by_group(self, values: Tensor) -> Tensor:
        """One value a weight [P] -> their sum in each group [G]."""
        return sum_groups(values, self.groups)

    def log_prob(self, w: Tensor) -> Tensor:
        """log p(w) of each row of w [..., P]."""
        return torch.distributions.Normal(self.mean, self.scales).log_prob(w).sum(-1)


@dataclass(frozen=True)
class SearchSlopes:
    """How the expected objective U changes with the search distribution: ∂U/∂mean [P] and ∂U/∂log scale [G]."""

    by_mean: Tensor
    by_log_scale: Tensor

    def norms(self) -> dict[str, float]:
        """How long they are, by the names that records give them: ‖∂U/∂mean‖ and ‖∂U/∂log scale‖."""
        return {"gradient": float(self.by_mean.norm()), "scale_gradient": float(self.by_log_scale.norm())}


def scores(distribution: SearchDistribution, epsilon: Tensor) -> tuple[Tensor, Tensor]:
    """The slopes of log p(mean + scale ∘ ε) by mean [N, P] and by log scale [N, G], for rows of noise [N, P].

    ∂log p/∂mean = ε/scale,  ∂log p/∂log scale_g = Σ_{i in g} (εᵢ² − 1)
    """
    squares = epsilon.square()
    by_log = (
        squares
        if distribution.groups is None
        else torch.stack([p.sum(1) for p in squares.split(distribution.groups, 1)], 1)
    )
    return epsilon / distribution.scales, by_log - distribution.counts


def scale_groups(per: str, layout: Layout) -> tuple[int, ...] | None:
    """How many weights share a scale, one `per` weight, tensor, layer or network.

    Point estimates share one of their own, but where each tensor has one.
    """
    if per == "weight":
        return None
    if per == "tensor":
        return tuple(prod(slot.shape) for slot in layout.slots)
    random = layout.weights_per_layer() if per == "layer" else (layout.random,)
    point_weights = layout.size - layout.random
    return (*random, point_weights) if point_weights else random
