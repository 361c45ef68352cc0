"""Training data as batches, held in memory or given by a DataLoader; every order is a function of seed and epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from doxa.contracts import Batch, Inputs, Likelihood
from doxa.errors import BadInput
from doxa.randomness import Key, generator, reseed, seed_of
from doxa.rows import as_inputs, as_pair, as_target, count, take, tensors


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

    def epoch(self, number: int, key: Key, streams: int, skip: int) -> Iterator[list[Batch]]:
        """The epoch's batches from the `skip`-th on, one for each stream side by side."""
        ...

    def fingerprint(self) -> str:
        """The same for the same data, so that a run is not resumed on another."""
        ...


@dataclass
class InMemory:
    """All rows on the net's device, shuffled afresh each epoch, gathered by index."""

    x: Inputs
    y: Tensor
    batch_size: int

    @property
    def size(self) -> int:
        return count(self.x)

    @property
    def batches(self) -> int:
        return len(self._bounds())

    def _bounds(self) -> list[tuple[int, int]]:
        starts = list(range(0, self.size, self.batch_size))
        # A last batch of one row would have no batch statistics: it joins its neighbour.
        if len(starts) > 1 and self.size - starts[-1] == 1:
            starts.pop()
        return list(zip(starts, [*starts[1:], self.size], strict=True))

    def example(self) -> Inputs:
        return take(self.x, slice(0, 3))

    def check(self, likelihood: Likelihood, output: Tensor) -> None:
        self.y = likelihood.check(output, self.y)

    def epoch(self, number: int, key: Key, streams: int, skip: int) -> Iterator[list[Batch]]:
        orders = []
        for k in range(streams):
            source = generator((*key, "order", number, k))
            orders.append(torch.randperm(self.size, generator=source).to(self.y.device))
        for start, stop in self._bounds()[skip:]:
            yield [Batch(take(self.x, order[start:stop]), self.y[order[start:stop]]) for order in orders]

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        some = torch.linspace(0, self.size - 1, min(self.size, 500)).long().to(self.y.device)
        for name, tensor in (*tensors(self.x), ("y", self.y)):
            digest.update(repr((name, tuple(tensor.shape), str(tensor.dtype))).encode())
            digest.update(tensor[some].cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
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

    def example(self) -> Inputs:
        return take(self._batch(next(iter(self.loader))).x, slice(0, 3))

    def check(self, likelihood: Likelihood, output: Tensor) -> None:
        self.likelihood, self.output = likelihood, output

    def epoch(self, number: int, key: Key, streams: int, skip: int) -> Iterator[list[Batch]]:
        reseed((*key, "order", number), self.like.device)
        own = getattr(self.loader, "generator", None)
        if own is not None:
            own.manual_seed(seed_of((*key, "loader", number)))
        given = 0
        for given, item in enumerate(self.loader, 1):
            if given > skip:
                yield [self._batch(item)] * streams
            if given == self.batches:
                return
        raise BadInput(f"the DataLoader gave {given} batches in epoch {number + 1}; {self.batches} were expected")

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
        return f"loader of {self.size} rows in {self.batches} batches"


def feed(data: Any, like: Tensor, batch_size: int, size: int | None) -> Feed:
    """The right feed for what was given; the number of rows must be known, or told as `size`."""
    if not isinstance(data, DataLoader):
        x, y = as_pair(data, like, "data")
        if size not in (None, count(x)):
            raise BadInput(f"size={size}, but the data has {count(x)} rows; leave size out")
        if batch_size < 1:
            raise BadInput(f"batch_size must be at least 1, got {batch_size}")
        return InMemory(x, y, batch_size)
    if size is None:
        try:
            size = len(data.dataset)  # type: ignore[arg-type]
        except TypeError:
            raise BadInput(
                "the DataLoader's dataset has no length, so the KL cannot be weighed against the data: "
                "pass the number of training rows as size="
            ) from None
    try:
        batches = len(data)
    except TypeError:
        batches = -(-size // (data.batch_size or 1))
    if size < 1 or batches < 1:
        raise BadInput(f"the DataLoader is empty: {size} rows in {batches} batches")
    return Loaded(data, size, batches, like)
