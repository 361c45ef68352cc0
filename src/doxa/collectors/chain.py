"""Samples of the weights along the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import torch
from torch import Tensor, nn

from doxa.collectors.statistics import every_nth_step, require_some_steps, require_weights
from doxa.contracts import Batch, Estimate, Posterior
from doxa.engine.context import StepContext
from doxa.engine.contracts import Beliefs, CollectorSetup, Gradient, State
from doxa.errors import BadInput, BrokenFile, require_share, require_whole
from doxa.posteriors.samples import Samples
from doxa.random.philox import Stream
from doxa.storage.rows import blocks
from doxa.storage.sample_store import SampleStore
from doxa.weights.layout import learning_flags

STAGED_NUMBERS = {"cpu": 1 << 18, "cuda": 1 << 20}  # numbers that wait in memory before they are written
BUFFERS = "buffers."


@dataclass(frozen=True)
class Chain:
    """The weights after every `thinning`-th step from a share `burn_in` of the run on, one an epoch unless told.

    In memory, or with `on_disk` in files of the run's folder, to which they are appended: then memory holds a few of
    them. With each go the running statistics that the net had, as BatchNorm's.
    Neal (1996), Bayesian learning for neural networks.
    """

    burn_in: float = 0.5
    thinning: int | None = None
    on_disk: bool = False

    has_best: ClassVar[bool] = False  # a chain is believed as a whole: none of its states is the best

    def __post_init__(self) -> None:
        require_share("burn_in", self.burn_in)
        if self.thinning is not None:
            require_whole("thinning", self.thinning)

    def start(self, gradient: Gradient, setup: CollectorSetup) -> ChainCollector:
        """Chains without a state."""
        require_weights(gradient, "a sample")
        if len(gradient.parameters) > 1:
            raise BadInput("samples are kept of one vector of weights a net; this learner has several")
        if self.on_disk and setup.folder is None:
            raise BadInput("samples on disk need a folder: pass checkpoint=, or keep them in memory with on_disk=False")
        collector = ChainCollector(self, gradient, setup)
        require_some_steps(
            collector.moments(range(setup.steps)), setup.steps, collector.every, "sample", "burn_in or thinning"
        )
        return collector


class ChainCollector:
    """K chains: rows [W] of weights and statistics, in memory as [K, W] each, or in a store for each net."""

    def __init__(self, settings: Chain, gradient: Gradient, setup: CollectorSetup) -> None:
        self.settings, self.gradient, self.setup = settings, gradient, setup
        (parameter,) = gradient.parameters
        self.values = parameter.values
        self.every = setup.epoch if settings.thinning is None else settings.thinning
        self.first = int(settings.burn_in * setup.steps)
        self.moving_buffers = _moving_buffers(setup.problem.net, gradient)
        self.slots = tuple((name, tuple(b.shape[1:])) for name, b in self.moving_buffers.items())
        columns = self.values.shape[1] + sum(prod(shape) for _, shape in self.slots)
        self.samples_in_memory: list[Tensor] = []  # [K, W] each: all of them, or those that wait to be written
        self.max_rows_in_memory = max(1, STAGED_NUMBERS[self.values.device.type] // (len(self.values) * columns))
        self.columns, self.rows_written = columns, 0
        self.stores: list[SampleStore] = []
        self.checksums = [0] * len(self.values)  # a checksum of all that each store holds

    def __getstate__(self) -> dict[str, Any]:
        raise BadInput("chains are not copied to other processes: sample with workers of another kind")

    def moments(self, span: range) -> Collection[int]:
        return every_nth_step(span, self.first, self.every)

    @torch.no_grad()
    def observe(self, context: StepContext) -> None:
        nets = len(self.values)
        self.samples_in_memory.append(
            torch.cat([self.values, *(b.reshape(nets, -1).to(self.values) for b in self.moving_buffers.values())], 1)
        )
        if self.settings.on_disk and len(self.samples_in_memory) >= self.max_rows_in_memory:
            self._write()

    def _path(self, net: int) -> Path:
        assert self.setup.folder is not None
        return self.setup.folder / f"samples-{net}.rows"

    def _write(self) -> None:
        """Append what waits to the stores."""
        if not self.samples_in_memory:
            return
        if not self.stores:
            self.stores = [self._create_store(net) for net in range(len(self.values))]
        rows = torch.stack(self.samples_in_memory, 1)
        for net, (net_rows, store) in enumerate(zip(rows, self.stores, strict=True)):
            store.append(net_rows)
            self.checksums[net] = crc32(net_rows.cpu().contiguous().view(torch.uint8).numpy().data, self.checksums[net])
        self.rows_written += len(self.samples_in_memory)
        self.samples_in_memory.clear()

    def _create_store(self, net: int) -> SampleStore:
        """A store without rows: what a run that has no checkpoint of them left behind is written over, if it fits."""
        path = self._path(net)
        with suppress(BrokenFile):
            store = SampleStore.open(path)
            fits = (store.columns, store.dtype) == (self.columns, self.values.dtype)
            if fits and store.format.segment is not None:  # those of before were not sealed
                store.truncate(0)
                return store
        return SampleStore.create(path, self.columns, self.values.dtype, replace=True)

    def _reopen_store(self, net: int) -> SampleStore:
        """The store that the checkpoint tells of, cut off where it ends there."""
        store = SampleStore.open(self._path(net))
        if (store.columns, store.dtype) != (self.columns, self.values.dtype):
            raise BrokenFile(f"{store.path} holds samples of another net; restore the one that belongs to this run")
        store.truncate(self.rows_written)
        checksum = 0
        for start, stop in blocks(store):
            checksum = crc32(store.read(start, stop).view(torch.uint8).numpy().data, checksum)
        if checksum != self.checksums[net]:
            raise BrokenFile(
                f"{store.path} holds other samples than those that its checkpoint was written with; restore both from "
                "one copy"
            )
        return store

    def improved(self, nets: Sequence[int]) -> None:
        pass

    def finish(self, nets: Sequence[int], data: Callable[[], Iterator[Batch]]) -> None:
        if self.settings.on_disk:
            self._write()

    def beliefs(self) -> Beliefs:
        """In the samples so far; before the first of them, in the weights as they are."""
        return ChainBeliefs(self, self.gradient.beliefs())

    def posterior(self, net: int) -> Samples | None:
        """One net's samples, None without any."""
        random = self.setup.problem.layout.random
        if not self.samples_in_memory and not self.rows_written:
            return None
        if not self.settings.on_disk:
            return Samples(torch.stack([rows[net] for rows in self.samples_in_memory]), random, self.slots)
        self._write()
        return Samples(self.stores[net].snapshot(), random, self.slots, like=self.values.new_empty(0))

    def state(self) -> State:
        rows = {} if not self.samples_in_memory else {"rows": torch.stack(self.samples_in_memory)}
        return State(rows, numbers={"written": self.rows_written, "first": self.first, "sums": list(self.checksums)})

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        rows = tensors.get("rows", self.values.new_empty(0, len(self.values), self.columns))
        if rows.shape[1:] != (len(self.values), self.columns):
            raise ValueError(f"rows have shape {tuple(rows.shape)}, not [·, {len(self.values)}, {self.columns}]")
        if any(type(numbers[name]) is not int or numbers[name] < 0 for name in ("written", "first")):
            raise ValueError("written and first must be numbers of rows and steps")
        self.samples_in_memory = [*rows.to(self.values.device).unbind(0)]
        self.rows_written = numbers["written"]
        if (
            self.samples_in_memory or self.rows_written
        ):  # what has begun has begun, however many epochs there are to be now
            self.first = numbers["first"]
        self.checksums = list(numbers["sums"])
        self.stores = [self._reopen_store(k) for k in range(len(self.values))] if self.rows_written else []


@dataclass(frozen=True, eq=False)
class ChainBeliefs:
    """What chains of samples stand for; a draw in the midst of learning is where a chain is."""

    collector: ChainCollector
    last: Beliefs

    @property
    def mean(self) -> Tensor:
        return self.last.mean

    @property
    def noise(self) -> dict[str, str]:
        varies = {slot.name for slot in self.collector.setup.problem.layout.random_slots}
        return {name: "samples" if name in varies else how for name, how in self.last.noise.items()}

    def draw(self, stream: Stream) -> Tensor:
        return self.last.draw(stream)

    def posterior(self, net: int) -> Posterior:
        return self.collector.posterior(net) or self.last.posterior(net)

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return self.last.buffers(net)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        """−log p at the last state."""
        return self.last.complexities(nets)


def _moving_buffers(net: nn.Module, gradient: Gradient) -> dict[str, Tensor]:
    """The float buffers [K, ·] of modules that learn, by name: what may differ from sample to sample."""
    buffers = {k.removeprefix(BUFFERS): b for k, b in gradient.state().tensors.items() if k.startswith(BUFFERS)}
    modes = learning_flags(net)
    learns = {name: modes[m] for name, m in net.named_modules()}
    learning_buffers = {name for name, _ in net.named_buffers() if learns[name.rpartition(".")[0]]}
    return {name: b for name, b in buffers.items() if name in learning_buffers and b.is_floating_point()}


samples = Chain
EXAMPLES = {"samples": (Chain(burn_in=0.0, thinning=2),)}
