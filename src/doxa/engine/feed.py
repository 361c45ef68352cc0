"""Training data as batches, held in memory or given by a DataLoader; every order is a function of seed and epoch."""

from __future__ import annotations

import copy
import functools
import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from doxa.contracts import Batch, Inputs, Likelihood
from doxa.data.rows import (
    as_inputs,
    as_pair,
    as_target,
    as_tensor,
    map_inputs,
    named_tensors,
    row_count,
    stack_inputs,
    take_rows,
)
from doxa.errors import BadInput
from doxa.random import streams
from doxa.random.keys import Key, isolated_rng, reseed, seed_of
from doxa.random.philox import Stream, random_order

INTEGER_DTYPES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes
SAMPLER_NAMES = "sampler", "batch_sampler"  # what a loader calls them, whatever they are


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
        """The same for the same data, so that a run is not resumed on other data; of a loader, a few facts about it."""
        ...


@dataclass
class InMemoryFeed:
    """All rows on the net's device, shuffled afresh each epoch, gathered by index; `rows` [K, n] are each net's own."""

    x: Inputs
    y: Tensor
    batch_size: int
    rows: Tensor | None = None

    @property
    def size(self) -> int:
        return row_count(self.x) if self.rows is None else self.rows.shape[1]

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
        return take_rows(self.x, slice(0, 3))

    def check(self, likelihood: Likelihood, output: Tensor) -> None:
        self.y = likelihood.check(output, self.y)

    def epoch(self, number: int, seeds: Tensor, skip: int) -> Iterator[Batch]:
        index = self.order(number, seeds)
        for start, stop in self.bounds[skip:]:
            yield Batch(take_rows(self.x, index[:, start:stop]), self.y[index[:, start:stop]])

    def order(self, number: int, seeds: Tensor) -> Tensor:
        """The rows in the order in which each net sees them in an epoch [K, n]."""
        index = random_order(Stream(seeds, number, streams.ORDER), self.size)
        return index if self.rows is None else self.rows.gather(1, index)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, tensor in (*named_tensors(self.x), ("y", self.y)):
            digest.update(repr((name, tuple(tensor.shape), str(tensor.dtype))).encode())
            for part in tensor.split(1 << 12):
                # A weighted sum of each row's bits: quick, wherever the data lies, and other data has other sums.
                bits = part.contiguous().reshape(len(part), -1).view(INTEGER_DTYPES[min(part.element_size(), 8)]).long()
                weights = torch.arange(1, 2 * bits.shape[1], 2, device=bits.device)
                digest.update((bits * weights).sum(1).cpu().numpy().data)
        if self.rows is not None:
            digest.update(self.rows.cpu().numpy().data)
        return digest.hexdigest()


class LoaderReader:
    """One net's way through a loader: samplers and generators are copies of its own, the data set is everybody's.

    Its workers start afresh every epoch, as the seeds of their random numbers do.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.generators: list[torch.Generator] = []
        self.loader = self._copy(loader, {id(loader.dataset): loader.dataset})
        vars(self.loader).update(persistent_workers=False, _iterator=None)  # a loader lets nobody set them

    def read(self, key: Key, device: torch.device) -> Iterator[Any]:
        """The loader's batches in an order that the key alone decides, whichever generators its samplers own."""
        reseed(key, device)
        for generator in self.generators:
            generator.manual_seed(seed_of(key))
        items = iter(self.loader)
        # The order is drawn with the first batch, before another net's batch moves torch's generator.
        return chain([first] if (first := next(items, None)) is not None else [], items)

    def _copy(self, original: Any, copies: dict[int, Any]) -> Any:
        """A shallow copy with samplers and generators of its own; `copies` are known by what they were made of."""
        clone = copies[id(original)] = copy.copy(original)
        for name, part in list(vars(original).items()):
            if id(part) not in copies:
                self._copy_part(name, part, copies)
            if id(part) in copies:
                vars(clone)[name] = copies[id(part)]
        return clone

    def _copy_part(self, name: str, part: Any, copies: dict[int, Any]) -> None:
        if isinstance(part, torch.Generator):
            copies[id(part)] = torch.Generator(part.device)
            self.generators.append(copies[id(part)])
        elif isinstance(part, np.random.Generator | np.random.RandomState | random.Random):
            copies[id(part)] = copy.deepcopy(part)
        elif isinstance(part, Sampler) or (name in SAMPLER_NAMES and hasattr(part, "__dict__")):
            self._copy(part, copies)


@dataclass
class LoaderFeed:
    """Whatever a DataLoader yields as (x, y), moved to the net's device; its shuffling is seeded by the epoch.

    Each of K nets reads it by itself: `num_workers` of the loader are so many processes for each of them.
    """

    loader: DataLoader[Any]
    size: int
    batches: int
    like: Tensor

    def __post_init__(self) -> None:
        self.likelihood: Likelihood | None = None
        self.output: Tensor | None = None
        self.labels = ""
        self.readers: list[LoaderReader] = []  # one a net

    def example(self) -> Inputs:
        with isolated_rng(self.like.device):
            first_item = next(LoaderReader(self.loader).read(("example",), self.like.device), None)
        if first_item is None:
            raise BadInput("the DataLoader is empty: it gave not one batch")
        batch = self._batch(first_item)
        self.labels = hashlib.sha256(batch.y.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data).hexdigest()
        return take_rows(batch.x, slice(0, 3))

    def check(self, likelihood: Likelihood, output: Tensor) -> None:
        self.likelihood, self.output = likelihood, output

    def epoch(self, number: int, seeds: Tensor, skip: int) -> Iterator[Batch]:
        keys = [int(seed) for seed in seeds]
        self.readers += [LoaderReader(self.loader) for _ in keys[len(self.readers) :]]
        seeded_readers = zip(keys, self.readers, strict=True)
        iterators = [reader.read((key, "order", number), self.like.device) for key, reader in seeded_readers]
        for batch_number in range(self.batches):
            items = []
            for key, iterator in zip(keys, iterators, strict=True):
                # A data set may draw from torch's generator, which the steps between two batches have moved.
                reseed((key, "batch", number, batch_number), self.like.device)
                items.append(next(iterator, None))
            if any(item is None for item in items):
                raise BadInput(
                    f"the DataLoader gave {batch_number} batches in epoch {number + 1}; {self.batches} were expected"
                )
            if batch_number >= skip:
                yield stack_batches([self._batch(item) for item in items])

    def _batch(self, item: Any) -> Batch:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise BadInput(f"the DataLoader yields {type(item).__name__}; Doxa expects pairs (x, y)")
        x = tuple(item[0]) if isinstance(item[0], list) else item[0]
        batch = Batch(as_inputs(x, self.like), as_target(item[1], self.like))
        if row_count(batch.x) != batch.y.shape[0]:
            raise BadInput(f"a batch has {row_count(batch.x)} rows of x but {batch.y.shape[0]} of y")
        if self.likelihood is not None and self.output is not None:
            batch = Batch(batch.x, self.likelihood.check(self.output, batch.y))
        return batch

    def fingerprint(self) -> str:
        return f"loader of {self.size} rows in {self.batches} batches, first labels {self.labels}"


def stack_batches(net_batches: Sequence[Batch]) -> Batch:
    """Rows [B, ·] of each net as one batch: stacked if their shapes are equal."""
    signatures = [[(name, t.shape, t.dtype) for name, t in (*named_tensors(b.x), ("y", b.y))] for b in net_batches]
    if all(signature == signatures[0] for signature in signatures):
        return Batch(stack_inputs([b.x for b in net_batches]), torch.stack([b.y for b in net_batches]))
    first, *others = [Batch(map_inputs(b.x, lambda t: t[None]), b.y[None]) for b in net_batches]
    return Batch(first.x, first.y, tuple(others))


def make_feed(data: Any, like: Tensor, batch_size: int, size: int | None, rows: Sequence[Any] = (None,)) -> Feed:
    """The right feed for what was given; the number of rows must be known, or told as `size`.

    `rows` are each net's own, as indices or masks; all of them or none.
    """
    if not isinstance(data, DataLoader):
        x, y = as_pair(data, like, "data")
        if size not in (None, row_count(x)):
            raise BadInput(f"size={size}, but the data has {row_count(x)} rows; leave size out")
        if batch_size < 1:
            raise BadInput(f"batch_size must be at least 1, got {batch_size}")
        return InMemoryFeed(x, y, batch_size, _row_indices(rows, row_count(x), like.device))
    if any(net_rows is not None for net_rows in rows):
        raise BadInput("rows of their own are for data in memory: give a pair (x, y), not a DataLoader")
    size = _size_of(data, size)
    try:
        batches = len(data)
    except TypeError:
        batch_length = data.batch_size or 1
        batches = size // batch_length if data.drop_last else -(-size // batch_length)
    if size < 1 or batches < 1:
        raise BadInput(f"the DataLoader is empty: {size} rows in {batches} batches")
    return LoaderFeed(data, size, batches, like)


def _row_indices(rows: Sequence[Any], size: int, device: torch.device) -> Tensor | None:
    """Each net's own rows [K, n], checked."""
    index_rows = [_checked_indices(net_rows, size) for net_rows in rows if net_rows is not None]
    if not index_rows:
        return None
    if len(index_rows) < len(rows) or len({len(net_rows) for net_rows in index_rows}) > 1:
        raise BadInput("the members of one program need rows of their own, as many each, or none of them")
    return torch.stack(index_rows).to(device)


def _checked_indices(rows: Any, size: int) -> Tensor:
    """A net's own rows as indices [n], checked; a mask picks the rows where it is True."""
    values = as_tensor(rows, "rows")
    if values.dim() != 1:
        raise BadInput(f"rows of a member must be a list of indices or a mask; got shape {tuple(values.shape)}")
    if values.dtype == torch.bool:
        if len(values) != size:
            raise BadInput(f"a mask of rows needs an entry for each of the data's {size} rows; got {len(values)}")
        values = values.nonzero()[:, 0]
    indices = values.real.to(torch.int64)
    if values.is_complex() or not torch.equal(indices.to(values.dtype), values):
        raise BadInput("rows must be indices, which are whole numbers, or a mask of True and False")
    if not indices.numel() or int(indices.min()) < 0 or int(indices.max()) >= size:
        raise BadInput(f"rows must be indices from 0 to {size - 1}, and at least one")
    return indices


def _size_of(loader: DataLoader[Any], size: int | None) -> int:
    """How many rows the KL is weighed against; where loader and `size` leave a doubt, an error."""
    hands_over_batches = loader.batch_sampler is None  # whose rows the lengths of data set and sampler do not count
    rows, sampled = (None, None) if hands_over_batches else (_length(loader.dataset), _length(loader.sampler))
    if size is not None:
        if not isinstance(size, int) or size < 1 or (rows is not None and size not in (rows, sampled)):
            dataset_note = "" if rows is None else f", but the DataLoader has {rows} rows"
            raise BadInput(f"size={size!r}{dataset_note}: size= must be the number of training rows")
        return size
    if rows is None:
        reason = "is made of batches" if hands_over_batches and _length(loader.dataset) else "has no length"
        raise BadInput(
            f"the DataLoader's dataset {reason}, so the KL cannot be weighed against the data: "
            "pass the number of training rows as size="
        )
    if sampled not in (None, rows):
        raise BadInput(
            f"the DataLoader's sampler draws {sampled} rows an epoch from a dataset of {rows}, so the KL cannot be "
            "weighed against the data: pass the number of training rows as size="
        )
    return rows


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except TypeError:
        return None
