"""A step in its fastest form on its device: on a GPU the whole of it, recorded once and replayed as one CUDA graph.

On a CPU the flat passes are C kernels already (doxa/flat) and a step runs as it is written.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from doxa.contracts import Batch, Now, Problem, Training
from doxa.feed import Feed, InMemory
from doxa.optimisers.torchs import TorchAtWork
from doxa.philox import Stream
from doxa.rows import take

REPAYS = 200_000  # steps: compiling takes seconds to a minute, and saves 20 µs of a small step to 300 of a large one
WARM = 2  # steps before a recording: libraries choose their algorithms, kernels are compiled


def captured(
    problem: Problem, training: Training, optimiser: Any, source: Feed, words: Tensor, steps: int
) -> Captured | None:
    """The step of a training as a recording, or None where it runs as written; on a GPU it says why, once.

    Before so many `steps` that it repays, the nets are compiled too.
    """
    if problem.start.device.type != "cuda" or training.passes is None:
        return None

    def make(compiled: bool) -> Captured:
        assert isinstance(source, InMemory)
        return Captured(training, optimiser, source, words, compiled)

    return tried(make, training, why_not(problem, optimiser, source), steps)


Made = TypeVar("Made")


def tried(make: Callable[[bool], Made], training: Training, why: str | None, steps: int) -> Made | None:
    """What `make` records, the nets compiled where so many `steps` repay it; None, and a warning, where it cannot."""
    if why is None:
        for compiled in (True, False) if steps >= REPAYS else (False,):
            try:
                return make(compiled)
            except RuntimeError as error:
                training.passes.compiled = False
                said = str(error.__context__ or error).splitlines()[0]
                short = isinstance(error, torch.OutOfMemoryError)
                why = "there is too little memory for a recording" if short else f"the net cannot be recorded ({said})"
    warnings.warn(f"steps are not captured as a CUDA graph, which makes them slower: {why}", stacklevel=7)
    return None


def record(
    step: Callable[[], None], reset: Callable[[], Any], device: torch.device, aside: Any, pool: Any = None
) -> torch.cuda.CUDAGraph:
    """A step that needs no word from the CPU as a graph, on a stream `aside`; `reset` comes before it each time."""
    here = torch.cuda.current_stream(device)
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        for _ in range(WARM):
            reset()
            step()
    here.wait_stream(aside)
    reset()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=aside):
        step()
    return graph


def why_not(problem: Problem, optimiser: Any, source: Feed) -> str | None:
    if not isinstance(source, InMemory):
        return "the data comes from a DataLoader; give it as a pair (x, y)"
    if isinstance(optimiser, TorchAtWork):
        return "the optimiser is torch's; doxa.optimisers can be"
    if problem.uses.random:
        return "the net draws random numbers of its own, as nn.Dropout does"
    if any("lstm" in how or "gru" in how or "rnn" in how for how in problem.uses.other.values()):
        return "the net is recurrent"
    return None


class Captured:
    """Steps as CUDA graphs, one for each length of a batch: gather, noise, forward, backward, KL, optimiser, loss.

    What changes from step to step lies in the device's memory: a table of each epoch's KL weights, rates and Adam's
    corrections, the order of the rows, and two counters that the step itself moves on.
    """

    def __init__(
        self, training: Training, optimiser: Any, source: InMemory, words: Tensor, compiled: bool = False
    ) -> None:
        self.training, self.optimiser, self.source, self.words = training, optimiser, source, words
        device, nets = words.device, training.nets
        self.step, self.position = (torch.zeros(1, dtype=torch.int64, device=device) for _ in range(2))
        self.table = training.parameters[0].new_ones(source.batches, 2 * nets + 2).requires_grad_(False)
        self.table[:, nets : 2 * nets] = -1  # while it is recorded, everybody rests
        self.order = source.order(0, words)
        self.running = torch.zeros(nets, dtype=torch.float64, device=device)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        training.passes.compiled = compiled
        self._record()

    @functools.cached_property
    def lengths(self) -> list[int]:
        """Of the batches of an epoch."""
        return [stop - start for start, stop in self.source.bounds]

    def begin(self, epoch: int, skip: int, done: int, weights: Tensor, rates: Tensor, corrections: Tensor) -> None:
        """Lay out an epoch from a batch on: rows of weights and rates [batches, K], of corrections [batches, 2]."""
        self.table[skip:] = torch.cat([weights, rates.to(weights), corrections.to(weights)], 1)
        self.order.copy_(self.source.order(epoch, self.words))
        self.step.fill_(done)
        self.position.fill_(skip)

    def replay(self, batch: int) -> None:
        """The next step, whose batch is this one."""
        self.graphs[self.lengths[batch]].replay()

    def _step(self, length: int) -> None:
        nets = self.training.nets
        (row,) = self.table.index_select(0, self.position)
        places = self.position * self.source.batch_size + torch.arange(length, device=self.words.device)
        index = self.order.index_select(1, places)
        now = Now(Stream(self.words, self.step[0]), row[:nets])
        losses = self.training.step(Batch(take(self.source.x, index), self.source.y[index]), now)
        self.optimiser.step(now, row[nets : 2 * nets], row[2 * nets :])
        self.running += losses
        self.step += 1
        self.position += 1

    def _record(self) -> None:
        # Who rests keeps parameters and moments; what the nets themselves write to is put back.
        state = {k: t for k, t in self.training.state().items() if k.startswith("buffers.")}
        state |= {"counters.step": self.step, "counters.position": self.position, "running": self.running}
        before = {k: t.detach().clone() for k, t in state.items()}
        aside, pool = torch.cuda.Stream(self.words.device), None
        try:
            for length in sorted(set(self.lengths), reverse=True):
                self.graphs[length] = record(
                    functools.partial(self._step, length), self.position.zero_, self.words.device, aside, pool
                )
                pool = self.graphs[length].pool()
        finally:
            torch.cuda.current_stream(self.words.device).wait_stream(aside)
            with torch.no_grad():
                for name, tensor in state.items():
                    tensor.copy_(before[name])
