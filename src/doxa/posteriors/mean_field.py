"""The mean-field Gaussian."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.contracts import Draw
from doxa.errors import BadInput, require_positive
from doxa.flat import RHO_LIMIT, draw
from doxa.posteriors.density import no_density, require_flat
from doxa.posteriors.fit import require_finite, require_numbers, require_random
from doxa.random import streams
from doxa.random.keys import Key, seed_of, stream_of
from doxa.random.philox import Stream, fill_uniform
from doxa.weights.layout import Layout

NUMBERS_AT_ONCE = 1 << 24  # numbers that are drawn at a time on a GPU


@dataclass(frozen=True)
class MeanField:
    """An independent Gaussian for every random weight.

    q(w) = ∏ᵢ N(wᵢ; meanᵢ, scaleᵢ²),  scale = softplus(rho)

    `rho` is one number a weight [R], or one for each of `groups`, runs of neighbouring weights.
    Graves (2011), Practical variational inference for neural networks; Blundell et al. (2015).
    """

    mean: Tensor  # [P]
    rho: Tensor  # [G]
    groups: tuple[int, ...] | None = None

    @property
    def random(self) -> int:
        return self.rho.numel() if self.groups is None else sum(self.groups)

    @property
    def scale(self) -> Tensor:
        return expand_groups(softplus(self.rho), self.groups)

    @property
    def log_scale(self) -> Tensor:
        return expand_groups(log_softplus(self.rho), self.groups)

    @property
    def relevance(self) -> Tensor:
        """The signal-to-noise ratio |mean| / scale; 0 for a weight that is certainly zero."""
        return (self.mean[: self.random].abs() / self.scale).nan_to_num(nan=0.0, posinf=torch.inf)

    @property
    def components(self) -> int:
        return 1

    @property
    def distinct(self) -> int | None:
        return None

    def draws(self, samples: int, key: Key) -> Iterator[Draw]:
        random = self.random
        mean, scale = self.mean[None, :random], self.scale[None]
        draws_per_block = draws_at_once(self.mean)
        for first in range(0, samples, draws_per_block):
            seeds = [seed_of((*key, s)) for s in range(first, min(samples, first + draws_per_block))]
            w = self.mean.repeat(len(seeds), 1)
            stream = Stream(torch.tensor(seeds, device=w.device), number=streams.DRAW)
            draw(w[:, :random], mean.expand(len(w), -1), scale.expand(len(w), -1), None, None, stream)
            for row in w:
                yield Draw(row, weight=1 / samples)

    def log_prob(self, w: Tensor) -> Tensor:
        """log q(w) of flat weights [..., P], in float64 [...]: of the random ones, which come first.

        log q(w) = −Σᵢ [½ ((wᵢ − meanᵢ) / scaleᵢ)² + log scaleᵢ + ½ log 2π]

        Slopes go back to w, mean and rho. Weights that were pruned have no density.
        """
        require_flat(w, len(self.mean))
        if self.rho.numel() and bool(self.rho.amin() == -torch.inf):
            raise no_density("weights that were pruned are certainly zero")
        mean, rho, w = self.mean[: self.random].double(), self.rho.double(), w[..., : self.random].double()
        log_scale = expand_groups(log_softplus(rho), self.groups)
        # Where a scale is too small for its draw to leave the mean, 0/0 is meant to be 0.
        distance = torch.where(w == mean, 0.0, (w - mean) / expand_groups(softplus(rho), self.groups))
        return -(distance.square() / 2 + log_scale + 0.5 * math.log(2 * math.pi)).sum(-1)

    def pruned(self, keep: Tensor) -> MeanField:
        mean = self.mean.clone()
        mean[: self.random] *= keep
        # softplus(−∞) is the only certain zero: a rho of 0 would be a scale of 0.69, the noisiest weight of all.
        rho = expand_groups(self.rho, self.groups).masked_fill(~keep, -torch.inf)
        return replace(self, mean=mean, rho=rho, groups=None)

    def require_fit(self, layout: Layout) -> None:
        """Refuse, by BadInput, to be a belief about other weights; a rho of −∞ is a weight that is certainly zero."""
        require_numbers("mean", self.mean, (layout.size,))
        require_finite("mean", self.mean)
        count = layout.random if self.groups is None else len(self.groups)
        require_numbers("rho", self.rho, (count,), like=self.mean)
        if self.groups is not None and min(self.groups, default=0) < 0:
            raise BadInput(f"groups are {self.groups}; expected how many weights each has, from 0 up")
        require_random(self.random, layout)
        if self.rho.numel() and not bool(self.rho.amax() < torch.inf):  # NaN is its own maximum, and below nothing
            raise BadInput("rho holds NaN or +infinity; expected numbers below it")


@dataclass(frozen=True)
class Family:
    """How a mean-field posterior starts: its scales one `per` weight, layer or network, its means from the net.

    q(w) = ∏ᵢ N(wᵢ; meanᵢ, scaleᵢ²),  scale = softplus(rho)

    `scale` sets every scale to one value; `rho=(low, high)` draws rho uniformly, e.g. from (−5, −4), and
    `mean=(low, high)` the means. Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    per: str = "weight"
    scale: float = 0.01
    rho: tuple[float, float] | None = None
    mean: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.per not in ("weight", "layer", "network"):
            raise BadInput(f'per must be "weight", "layer" or "network"; got {self.per!r}')
        require_positive("scale", self.scale)
        for name, pair in (("rho", self.rho), ("mean", self.mean)):
            if pair is not None and not (len(pair) == 2 and -RHO_LIMIT < pair[0] <= pair[1] < RHO_LIMIT):
                raise BadInput(
                    f"{name} must be a pair (low, high) with −{RHO_LIMIT:g} < low ≤ high < {RHO_LIMIT:g}; got {pair}"
                )

    def start(self, layout: Layout, mean: Tensor, key: Key) -> MeanField:
        """The posterior before any data, around the net's weights `mean` [P]."""
        groups = {"weight": None, "layer": layout.weights_per_layer(), "network": (layout.random,)}[self.per]
        count = layout.random if groups is None else len(groups)
        mean = mean.clone()
        if self.mean is not None:
            mean[: layout.random] = uniform(layout.random, *self.mean, (*key, "mean"), mean)
        if self.rho is not None:
            rho = uniform(count, *self.rho, (*key, "rho"), mean)
        else:
            rho = inverse_softplus(mean.new_full((count,), self.scale))
        return MeanField(mean, rho, groups)


def draws_at_once(like: Tensor) -> int:
    """How many draws of such a vector are made together: a GPU makes many in the time that it takes to ask for one."""
    return max(1, NUMBERS_AT_ONCE // max(1, len(like))) if like.is_cuda else 1


def softplus(rho: Tensor) -> Tensor:
    """log(1 + exp(rho)); equal to rho where exp would overflow."""
    return F.softplus(rho)


def inverse_softplus(scale: Tensor) -> Tensor:
    """The rho with softplus(rho) = scale."""
    return scale + torch.log(-torch.expm1(-scale))


def log_softplus(rho: Tensor) -> Tensor:
    """log softplus(rho), finite for every finite rho: far below zero it is rho itself."""
    low = rho < -15
    return torch.where(low, rho - rho.clamp_max(-15).exp() / 2, softplus(rho.clamp_min(-15)).log())


def expand_groups(values: Tensor, groups: tuple[int, ...] | None) -> Tensor:
    """One value a group [..., G] -> one a weight [..., R]."""
    if groups is None:
        return values
    return values.index_select(-1, _group_index(groups, values.device))


@functools.lru_cache(maxsize=16)
def _group_index(groups: tuple[int, ...], device: torch.device) -> Tensor:
    """[R]: the group that each weight belongs to; kept, so that a captured step copies nothing to the device."""
    counts = torch.tensor(groups)
    return torch.arange(len(groups)).repeat_interleave(counts).to(device)


def sum_groups(values: Tensor, groups: tuple[int, ...] | None) -> Tensor:
    """One value a weight [R] -> their sum in each group [G]; the way back from `expand_groups` for gradients."""
    if groups is None:
        return values
    return torch.stack([part.sum() for part in values.split(groups)])


def uniform(count: int, low: float, high: float, key: Key, like: Tensor) -> Tensor:
    """`count` numbers uniform between low and high, a function of the key alone."""
    out = like.new_empty(1, count)
    fill_uniform(out, stream_of(key, like.device))
    return out[0].mul_(high - low).add_(low)


mean_field = Family
EXAMPLES = {"mean_field": lambda layout, start, uses: Family(rho=(-4.0, -1.0)).start(layout, start, (3,))}
