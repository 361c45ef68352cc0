"""The kept states of a sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from doxa.contracts import Draw
from doxa.errors import BadInput
from doxa.posteriors.density import no_density
from doxa.posteriors.fit import require_finite, require_numbers, require_random
from doxa.random.keys import Key
from doxa.storage.rows import JoinedRows, SampleRows, blocks
from doxa.storage.sample_store import SampleStore
from doxa.storage.sealed_rows import SealedRows
from doxa.weights.layout import Layout
from doxa.weights.probe import Uses


@dataclass(frozen=True)
class Samples:
    """Equal belief in each of S vectors of weights, in memory or on disk: what a Markov chain ends with, or several.

    q(w) = (1/S) Σₛ δ(w − wₛ)

    A row has P weights and, behind them, the float buffers that `slots` (name, shape) tell of: those that the net had
    when the state was kept. Rows on disk are read when they are needed, a few at a time, and come as `like`. What lies
    outside `keep` [R] is zero in all of them.
    Neal (1996), Bayesian learning for neural networks; Welling & Teh (2011).
    """

    rows: Tensor | SampleRows  # [S, P + buffers]
    random: int
    slots: tuple[tuple[str, tuple[int, ...]], ...] = ()
    keep: Tensor | None = None
    like: Tensor | None = None  # [0]: the dtype and device of what is read; rows in memory stay as they are

    def __post_init__(self) -> None:
        if isinstance(self.rows, SampleStore):
            object.__setattr__(self, "rows", self.rows.snapshot())
        if not isinstance(self.rows, Tensor) and self.like is None:
            object.__setattr__(self, "like", torch.empty(0, dtype=self.rows.dtype))
        flat = isinstance(self.rows, Tensor) and self.rows.dim() != 2
        if flat or len(self.rows) == 0 or not self.rows.dtype.is_floating_point:
            raise BadInput("rows must be real numbers [samples, weights and buffers], with at least one sample")
        if not 0 <= self.random <= self.size:
            raise BadInput(f"rows have {self.size} weights, of which {self.random} cannot be random")
        if self.keep is not None and (self.keep.shape != (self.random,) or self.keep.dtype != torch.bool):
            raise BadInput(f"keep must say yes or no of each of {self.random} random weights; got {self.keep.shape}")

    @property
    def size(self) -> int:
        """P: weights in a row."""
        columns = self.rows.shape[1] if isinstance(self.rows, Tensor) else self.rows.columns
        return columns - sum(prod(shape) for _, shape in self.slots)

    @property
    def mean(self) -> Tensor:
        """The middle of the samples; as weights of a net it is rarely a good one."""
        return self._moments[0]

    @property
    def scale(self) -> Tensor:
        return self._moments[1]

    @property
    def relevance(self) -> Tensor:
        """Root mean square over the samples, as for particles."""
        return self._moments[2]

    @property
    def components(self) -> int:
        """One: what differs from sample to sample is in its row."""
        return 1

    @property
    def distinct(self) -> int | None:
        return len(self.rows)

    def draws(self, samples: int, key: Key) -> Iterator[Draw]:
        """Every sample once, in order; where fewer are asked for, n of them evenly spaced.

        The k-th is sample ⌊(2k + 1) S / 2n⌋, from 0: the middle one of the k-th of n equal parts of the chain.
        """
        count, available = min(samples, len(self.rows)), len(self.rows)
        chosen = (
            range(available) if count == available else [(2 * k + 1) * available // (2 * count) for k in range(count)]
        )
        for row in self._read(chosen):
            yield Draw(row[: self.size], 0, 1 / count, self._buffers(row))

    def log_prob(self, w: Tensor) -> Tensor:
        """Refused, by BadInput: there is no density."""
        raise no_density("samples have all of their mass at the states that were kept")

    def pruned(self, keep: Tensor) -> Samples:
        return replace(self, keep=keep if self.keep is None else keep & self.keep)

    def with_buffers(self, slots: tuple[tuple[str, tuple[int, ...]], ...], buffers: Tensor) -> Samples:
        """The same samples with other buffers [S, E] in the place of theirs."""
        if isinstance(self.rows, Tensor):
            return replace(self, rows=torch.cat([self.rows[:, : self.size], buffers.to(self.rows)], 1), slots=slots)
        return replace(self, rows=JoinedRows(self.rows, self.size, buffers), slots=slots)

    def require_fit(self, layout: Layout) -> None:
        """Refuse, by BadInput, to be a belief about other weights; rows on disk are not read for it.

        Weights must be finite. Buffers need not be: a causal mask, say, is not.
        """
        names = [name for name, _ in self.slots]
        if len(set(names)) < len(names) or any(n < 0 for _, shape in self.slots for n in shape):
            raise BadInput(f"slots are {self.slots}; expected names, each once, and shapes")
        require_random(self.random, layout)
        if self.size != layout.size:
            raise BadInput(f"rows have {self.size} weights beside their buffers; the net's layout has {layout.size}")
        if isinstance(self.rows, Tensor):
            require_finite("rows", self.rows[:, : self.size])
        elif isinstance(self.rows, SealedRows):
            columns = self.rows.not_finite.columns
            if columns is not None and bool(columns[: self.size].any()):
                raise BadInput("rows on disk hold weights that are NaN or infinity; expected finite numbers")
        if self.like is not None:
            require_numbers("like", self.like, (0,))

    @property
    def slots_not_finite(self) -> list[str]:
        """The buffers that hold NaN or infinity in some row, as far as that is known without reading rows on disk."""
        if isinstance(self.rows, Tensor):
            columns: Tensor | None = self.rows[:, self.size :].isfinite().logical_not().any(0)
        else:
            columns = self.rows.not_finite.columns if isinstance(self.rows, SealedRows) else None
            columns = None if columns is None else columns[self.size :]
        if columns is None:
            return []
        parts = columns.split([prod(shape) for _, shape in self.slots])
        return [name for (name, _), part in zip(self.slots, parts, strict=True) if bool(part.any())]

    def weight_blocks(self) -> Iterator[Tensor]:
        """All weights, a few samples [n, P] at a time."""
        for start, stop in blocks(self.rows):
            yield self._span(start, stop)[:, : self.size]

    @property
    def prototype(self) -> Tensor:
        """An empty tensor of the dtype and on the device of the draws."""
        if isinstance(self.rows, Tensor):
            return self.rows.new_empty(0)
        assert self.like is not None
        return self.like

    def _read(self, chosen: Sequence[int]) -> Iterator[Tensor]:
        """Rows by their numbers: all of them in blocks, some of them one by one."""
        single_rows = [(s, s + 1) for s in chosen]
        for start, stop in blocks(self.rows) if len(chosen) == len(self.rows) else single_rows:
            yield from self._span(start, stop)

    def _span(self, start: int, stop: int) -> Tensor:
        rows = (
            self.rows[start:stop] if isinstance(self.rows, Tensor) else self.rows.read(start, stop).to(self.prototype)
        )
        if self.keep is None:
            return rows
        rows = rows.clone()
        rows[:, : self.random] *= self.keep
        return rows

    def _buffers(self, row: Tensor) -> Mapping[str, Tensor] | None:
        if not self.slots:
            return None
        parts = row[self.size :].split([prod(shape) for _, shape in self.slots])
        return {name: part.view(shape) for (name, shape), part in zip(self.slots, parts, strict=True)}

    @cached_property
    def _moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean [P], standard deviation [R] and root mean square [R], in one pass, summed in float64."""
        first = self._span(0, 1)[0, : self.size].double()
        total, squares = torch.zeros_like(first), torch.zeros_like(first)
        for weights in self.weight_blocks():
            difference = weights.double() - first  # so that what never varies has a scale of exactly 0
            total += difference.sum(0)
            squares += difference.square_().sum(0)
        shift = total / len(self.rows)
        mean, variance = first + shift, (squares / len(self.rows) - shift.square()).clamp_min(0)
        random, dtype = self.random, self.prototype.dtype
        size = (variance + mean.square()).sqrt()
        return mean.to(dtype), variance[:random].sqrt().to(dtype), size[:random].to(dtype)


def _example(layout: Layout, start: Tensor, uses: Uses) -> Samples:
    apart = torch.randn(5, len(start), generator=torch.Generator().manual_seed(2))
    return Samples(start + 0.1 * apart, layout.random)


samples = Samples
EXAMPLES = {"samples": _example}
