"""Training data as batches, held in memory or given by a DataLoader; every order is a function of seed and epoch."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from doxa.contracts import Batch, Inputs, Likelihood
from doxa.errors import BadInput
from doxa.philox import Stream, order
from doxa.randomness import Key, isolated, reseed, seed_of
from doxa.rows import as_inputs, as_pair, as_target, count, stacked, take, tensors

ORDER = 0x7FFFFFFF  # the number of the streams that shuffle, which no step uses
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes


class Feed(Protocol):
    """Where batches come from."""

    @property
    def size(self) -> int:
        """Rows of training data."""
        ...

    @property
    def batches(self) -> int:
        """In an epoch."""
        ...

    def example(self) -> Inputs:
        """A few rows of inputs."""
        ...

    def check(self, likelihood: Likelihood, output: Tensor) -> None:
        """Refuse targets that the likelihood cannot use with such outputs."""
        ...

    def epoch(self, number: int, seeds: Tensor, skip: int) -> Iterator[Batch]:
        """The epoch's batches from the `skip`-th on, in an order of its own for each of K seeds [K]."""
        ...

    def fingerprint(self) -> str:
        """The same for the same data, so that a run is not resumed on another."""
        ...


@dataclass
class InMemory:
    """All rows on the net's device, shuffled afresh each epoch, gathered by index; `rows` [K, n] are each net's own."""

    x: Inputs
    y: Tensor
    batch_size: int
    rows: Tensor | None = None

    @property
    def size(self) -> int:
        return count(self.x) if self.rows is None else self.rows.shape[1]

    @property
    def batches(self) -> int:
        return len(self.bounds)

    @functools.cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """Where each batch of an epoch begins and ends."""
        starts = list(range(0, self.size, self.batch_size))
        # A last batch of one row would have no batch statistics: it joins its neighbour.
        if len(starts) > 1 and self.size - starts[-1] == 1:
            starts.pop()
        return list(zip(starts, [*starts[1:], self.size], strict=True))

    def example(self) -> Inputs:
        return take(self.x, slice(0, 3))

    def check(self, likelihood: Likelihood, output: Tensor) -> None:
        self.y = likelihood.check(output, self.y)

    def epoch(self, number: int, seeds: Tensor, skip: int) -> Iterator[Batch]:
        index = self.order(number, seeds)
        for start, stop in self.bounds[skip:]:
            yield Batch(take(self.x, index[:, start:stop]), self.y[index[:, start:stop]])

    def order(self, number: int, seeds: Tensor) -> Tensor:
        """The rows in the order in which each net sees them in an epoch [K, n]."""
        index = order(Stream(seeds, number, ORDER), self.size)
        return index if self.rows is None else self.rows.gather(1, index)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, tensor in (*tensors(self.x), ("y", self.y)):
            digest.update(repr((name, tuple(tensor.shape), str(tensor.dtype))).encode())
            for part in tensor.split(1 << 12):
                # A weighted sum of each row's bits: quick, wherever the data lies, and other data has other sums.
                bits = part.contiguous().reshape(len(part), -1).view(WORDS[min(part.element_size(), 8)]).long()
                weights = torch.arange(1, 2 * bits.shape[1], 2, device=bits.device)
                digest.update((bits * weights).sum(1).cpu().numpy().data)
        if self.rows is not None:
            digest.update(self.rows.cpu().numpy().data)
        return digest.hexdigest()


@dataclass
class Loaded:
    """Whatever a DataLoader yields as (x, y), moved to the net's device; its shuffling is seeded by the epoch."""

    loader: DataLoader[Any]
    size: int
    batches: int
    like: Tensor

    def __post_init__(self) -> None:
        self.likelihood: Likelihood | None = None
        self.output: Tensor | None = None
        self.labels = ""

    def example(self) -> Inputs:
        with isolated(self.like.device):
            some = next(self._shuffled(("example",)), None)
        if some is None:
            raise BadInput("the DataLoader is empty: it gave not one batch")
        batch = self._batch(some)
        self.labels = hashlib.sha256(batch.y.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data).hexdigest()
        return take(batch.x, slice(0, 3))

    def check(self, likelihood: Likelihood, output: Tensor) -> None:
        self.likelihood, self.output = likelihood, output

    def epoch(self, number: int, seeds: Tensor, skip: int) -> Iterator[Batch]:
        keys = [int(seed) for seed in seeds]
        sources = [self._shuffled((key, "order", number)) for key in keys]
        for given in range(self.batches):
            items = []
            for key, source in zip(keys, sources, strict=True):
                # A data set may draw from torch's generator, which the steps between two batches have moved.
                reseed((key, "batch", number, given), self.like.device)
                items.append(next(source, None))
            if any(item is None for item in items):
                raise BadInput(
                    f"the DataLoader gave {given} batches in epoch {number + 1}; {self.batches} were expected"
                )
            if given >= skip:
                own = [self._batch(item) for item in items]
                yield Batch(stacked([batch.x for batch in own]), torch.stack([batch.y for batch in own]))

    def _shuffled(self, key: Key) -> Iterator[Any]:
        """The loader's batches in an order that the key alone decides, whichever generators its samplers own."""
        reseed(key, self.like.device)
        owners = (self.loader, self.loader.sampler, getattr(self.loader.batch_sampler, "sampler", None))
        for owner in owners:
            own = getattr(owner, "generator", None)
            if isinstance(own, torch.Generator):
                own.manual_seed(seed_of(key))
        items = iter(self.loader)
        # The order is drawn with the first batch, before another stream moves the samplers' generators.
        return chain([first] if (first := next(items, None)) is not None else [], items)

    def _batch(self, item: Any) -> Batch:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise BadInput(f"the DataLoader yields {type(item).__name__}; Doxa expects pairs (x, y)")
        x = tuple(item[0]) if isinstance(item[0], list) else item[0]
        batch = Batch(as_inputs(x, self.like), as_target(item[1], self.like))
        if count(batch.x) != batch.y.shape[0]:
            raise BadInput(f"a batch has {count(batch.x)} rows of x but {batch.y.shape[0]} of y")
        if self.likelihood is not None and self.output is not None:
            batch = Batch(batch.x, self.likelihood.check(self.output, batch.y))
        return batch

    def fingerprint(self) -> str:
        return f"loader of {self.size} rows in {self.batches} batches, first labels {self.labels}"


def feed(data: Any, like: Tensor, batch_size: int, size: int | None, rows: Sequence[Tensor | None] = (None,)) -> Feed:
    """The right feed for what was given; the number of rows must be known, or told as `size`.

    `rows` are each net's own, as indices; all of them or none.
    """
    if not isinstance(data, DataLoader):
        x, y = as_pair(data, like, "data")
        if size not in (None, count(x)):
            raise BadInput(f"size={size}, but the data has {count(x)} rows; leave size out")
        if batch_size < 1:
            raise BadInput(f"batch_size must be at least 1, got {batch_size}")
        return InMemory(x, y, batch_size, _chosen(rows, count(x), like.device))
    if any(own is not None for own in rows):
        raise BadInput("rows of their own are for data in memory: give a pair (x, y), not a DataLoader")
    size = _size_of(data, size)
    try:
        batches = len(data)
    except TypeError:
        length = data.batch_size or 1
        batches = size // length if data.drop_last else -(-size // length)
    if size < 1 or batches < 1:
        raise BadInput(f"the DataLoader is empty: {size} rows in {batches} batches")
    return Loaded(data, size, batches, like)


def _chosen(rows: Sequence[Tensor | None], size: int, device: torch.device) -> Tensor | None:
    """Each net's own rows [K, n], checked."""
    found = [own for own in rows if own is not None]
    if not found:
        return None
    if len(found) < len(rows) or len({len(own) for own in found}) > 1:
        raise BadInput("the members of one program need rows of their own, as many each, or none of them")
    chosen = torch.stack([own.to(device, torch.int64) for own in found])
    if not chosen.numel() or int(chosen.min()) < 0 or int(chosen.max()) >= size:
        raise BadInput(f"rows must be indices from 0 to {size - 1}, and at least one")
    return chosen


def _size_of(loader: DataLoader[Any], size: int | None) -> int:
    """How many rows the KL is weighed against; where loader and `size` leave a doubt, an error."""
    rows, drawn = _length(loader.dataset), _length(loader.sampler)
    if size is not None:
        if not isinstance(size, int) or size < 1 or (rows is not None and size not in (rows, drawn)):
            known = "" if rows is None else f", but the DataLoader has {rows} rows"
            raise BadInput(f"size={size!r}{known}: size= must be the number of training rows")
        return size
    if rows is None:
        raise BadInput(
            "the DataLoader's dataset has no length, so the KL cannot be weighed against the data: "
            "pass the number of training rows as size="
        )
    if drawn not in (None, rows):
        raise BadInput(
            f"the DataLoader's sampler draws {drawn} rows an epoch from a dataset of {rows}, so the KL cannot be "
            "weighed against the data: pass the number of training rows as size="
        )
    return rows


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except TypeError:
        return None
