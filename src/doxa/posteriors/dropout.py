"""The dropout posterior."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from doxa.contracts import Draw
from doxa.errors import BadInput
from doxa.posteriors.density import no_density
from doxa.posteriors.fit import require_finite, require_numbers, require_random
from doxa.random.keys import Key, stream_of
from doxa.random.philox import Stream, fill_dropout_mask
from doxa.weights.layout import Layout
from doxa.weights.probe import Uses


@dataclass(frozen=True)
class Masked:
    """One weight tensor whose input channels are dropped together."""

    start: int
    shape: tuple[int, ...]
    axis: int  # of the weight: its input channels
    groups: int
    rate: float

    @property
    def stop(self) -> int:
        return self.start + torch.Size(self.shape).numel()

    @property
    def channels(self) -> int:
        """Input channels of the operation."""
        return self.shape[self.axis] * (1 if self.axis == 0 else self.groups)

    def expand_mask(self, mask: Tensor) -> Tensor:
        """A mask over input channels [C] as one over the weight."""
        if self.axis == 0:
            return mask.reshape(-1, *[1] * (len(self.shape) - 1)).expand(self.shape)
        per_group = mask.reshape(self.groups, 1, self.shape[1])
        rows = per_group.expand(self.groups, self.shape[0] // self.groups, self.shape[1]).reshape(self.shape[:2])
        return rows.reshape(*self.shape[:2], *[1] * (len(self.shape) - 2)).expand(self.shape)


@dataclass(frozen=True)
class Dropout:
    """Each input channel of a linear map or convolution is there, or gone with all its weights.

    w = mean · z / (1 − rate),  z ~ Bernoulli(1 − rate), one z for each input channel

    A draw is one mask for all rows, so it is a vector of weights like any other.
    Gal & Ghahramani (2016), Dropout as a Bayesian approximation.
    """

    mean: Tensor  # [P]
    random: int
    masked: tuple[Masked, ...]

    @property
    def keep(self) -> Tensor:
        """[R]: the probability that each random weight is there."""
        keep = torch.ones_like(self.mean[: self.random])
        for m in self.masked:
            keep[m.start : m.stop] = 1 - m.rate
        return keep

    @property
    def scale(self) -> Tensor:
        return self.mean[: self.random].abs() * (1 / self.keep - 1).sqrt()

    @property
    def relevance(self) -> Tensor:
        """|mean|: every dropped weight has the same signal-to-noise ratio."""
        return self.mean[: self.random].abs()

    @property
    def components(self) -> int:
        return 1

    @property
    def distinct(self) -> int | None:
        return None

    def draws(self, samples: int, key: Key) -> Iterator[Draw]:
        for s in range(samples):
            stream = stream_of((*key, s), self.mean.device)
            yield Draw(apply_dropout(self.masked, self.mean[None].clone(), stream)[0], weight=1 / samples)

    def log_prob(self, w: Tensor) -> Tensor:
        """Refused, by BadInput: there is no density."""
        raise no_density("a weight under dropout is there or gone, one of two numbers")

    def pruned(self, keep: Tensor) -> Dropout:
        mean = self.mean.clone()
        mean[: self.random] *= keep
        return replace(self, mean=mean)

    def require_fit(self, layout: Layout) -> None:
        """Refuse, by BadInput, to be a belief about other weights, or to drop what is no weight's channel."""
        require_random(self.random, layout)
        require_numbers("mean", self.mean, (layout.size,))
        require_finite("mean", self.mean)
        shape_by_start = {slot.start: slot.shape for slot in layout.random_slots if slot.stop > slot.start}
        for m in self.masked:
            if shape_by_start.pop(m.start, None) != m.shape:
                raise BadInput(
                    f"masked has one of shape {m.shape} at {m.start}; no weight of the net, or one masked twice"
                )
            if not (m.axis in (0, 1) and len(m.shape) > 1 and m.groups > 0 and m.shape[0] % m.groups == 0):
                raise BadInput(f"masked has axis {m.axis} and {m.groups} groups; none of a weight of shape {m.shape}")
            if not 0 <= m.rate < 1:
                raise BadInput(f"masked has a rate of {m.rate}; expected one from 0 to below 1")


def apply_dropout(masked: Sequence[Masked], w: Tensor, stream: Stream) -> Tensor:
    """Weights [K, P] with channels dropped by each net's stream, in place."""
    for i, m in enumerate(masked):
        dropout_mask = w.new_empty(len(w), m.channels)
        fill_dropout_mask(dropout_mask, stream.with_number(stream.number + i), m.rate)
        w[:, m.start : m.stop].unflatten(1, m.shape).mul_(torch.vmap(m.expand_mask)(dropout_mask))
    return w


def masked_weights(layout: Layout, uses: Uses, rate: float, input_rate: float) -> tuple[Masked, ...]:
    """What dropout reaches: the weight of every linear map and convolution, the net's first at the input's rate."""
    masked = []
    for slot in layout.random_slots:
        use = uses.single_use.get(slot.name)
        if use is None or use.role != "weight":
            continue
        p = input_rate if use.first else rate
        if p > 0:
            masked.append(Masked(slot.start, slot.shape, 0 if use.transposed else 1, use.groups, p))
    return tuple(masked)


dropout = Dropout
EXAMPLES = {
    "dropout": lambda layout, start, uses: Dropout(start, layout.random, masked_weights(layout, uses, 0.4, 0.2))
}
