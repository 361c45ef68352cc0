"""Data as a source of batches: in memory, gathered by index where the step runs, or given by a loader."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import torch
from torch import Tensor

from doxa.contracts import Batch
from doxa.data.rows import take_rows
from doxa.engine.context import StepContext
from doxa.engine.contracts import Source, State
from doxa.engine.feed import Feed, InMemoryFeed


def make_source(feed: Feed, net_seeds: Tensor) -> Source:
    """The batches of K nets, each of which sees the rows in an order of its own, by its seed [K]."""
    return ShuffledSource(feed, net_seeds) if isinstance(feed, InMemoryFeed) else LoaderSource(feed, net_seeds)


class ShuffledSource:
    """Rows in memory, shuffled afresh each epoch; a unit is a step, and a form the length of its batch."""

    period = 1
    eager = None

    def __init__(self, feed: InMemoryFeed, net_seeds: Tensor) -> None:
        self.feed, self.net_seeds = feed, net_seeds
        self.epoch, self.batch_index, self.recorded = -1, 0, False
        self.order: Tensor | None = None  # [K, n]

    def size(self, unit: int) -> int:
        return self.feed.size

    def form(self, unit: int) -> Hashable:
        start, stop = self.feed.bounds[unit % self.feed.batches]
        return stop - start

    def begin(self, unit: int) -> None:
        epoch, self.batch_index = divmod(unit, self.feed.batches)
        if epoch == self.epoch:
            return
        self.epoch = epoch
        if self.order is not None and self.recorded:  # a recording reads it where it lies
            self.order.copy_(self.feed.order(epoch, self.net_seeds))
            return
        self.order = None
        self.order = self.feed.order(epoch, self.net_seeds)

    def batch(self, context: StepContext) -> Batch:
        assert self.order is not None
        start, stop = self.feed.bounds[self.batch_index]
        if isinstance(context.position, Tensor):
            self.recorded = True
            columns = context.position * self.feed.batch_size + torch.arange(stop - start, device=self.net_seeds.device)
            index = self.order.index_select(1, columns)
        else:
            index = self.order[:, start:stop]
        return Batch(take_rows(self.feed.x, index), self.feed.y[index])

    def state(self) -> State:
        return State()


class LoaderSource:
    """Whatever a loader yields, in order; it is read where the CPU has a say."""

    period = 1
    eager = "the data comes from a DataLoader; give it as a pair (x, y)"

    def __init__(self, feed: Feed, net_seeds: Tensor) -> None:
        self.feed, self.net_seeds = feed, net_seeds
        self.next_unit = -1  # the unit that the loader stands before
        self.items: Iterator[Batch] = iter(())
        self.current: Batch | None = None

    def size(self, unit: int) -> int:
        return self.feed.size

    def form(self, unit: int) -> Hashable:
        return None

    def begin(self, unit: int) -> None:
        epoch, skip = divmod(unit, self.feed.batches)
        if unit != self.next_unit or skip == 0:
            self.items = self.feed.epoch(epoch, self.net_seeds, skip)
        self.current, self.next_unit = next(self.items), unit + 1

    def batch(self, context: StepContext) -> Batch | None:
        return self.current

    def state(self) -> State:
        return State()
