"""The mean of the weights along the way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.collectors.statistics import (
    BeliefsWithBuffers,
    every_nth_step,
    refresh_buffers,
    require_some_steps,
    require_weights,
)
from doxa.contracts import Batch
from doxa.engine.context import StepContext
from doxa.engine.contracts import Beliefs, CollectorSetup, Gradient, State
from doxa.engine.states import restore
from doxa.errors import require_share, require_whole


@dataclass(frozen=True)
class Average:
    """The plain mean of the weights after some of the steps.

    w̄ = (1/n) Σᵢ wᵢ,  i = every-th step from a share `start_at` of the run on

    Without `every` it is one an epoch, at its end. Of nets with BatchNorm the statistics are taken anew at the mean, in
    one pass over the data when all is done; until then those of the last weights serve.
    Polyak & Juditsky (1992), Acceleration of stochastic approximation by averaging; Izmailov et al. (2018), Averaging
    weights leads to wider optima and better generalization.
    """

    start_at: float = 0.75
    every: int | None = None

    def __post_init__(self) -> None:
        require_share("start_at", self.start_at)
        if self.every is not None:
            require_whole("every", self.every)

    def start(self, gradient: Gradient, setup: CollectorSetup) -> AverageCollector:
        """Nothing averaged yet."""
        require_weights(gradient, "an average")
        collector = AverageCollector(self, gradient, setup)
        require_some_steps(
            collector.moments(range(setup.steps)), setup.steps, collector.every, "average", "start_at or every"
        )
        return collector


class AverageCollector:
    """Sums of the parameters in double precision, and how many there are of each net."""

    def __init__(self, settings: Average, gradient: Gradient, setup: CollectorSetup) -> None:
        self.gradient, self.setup = gradient, setup
        self.every = setup.epoch if settings.every is None else settings.every
        self.first = int(settings.start_at * setup.steps)
        self.sums = {p.name: torch.zeros_like(p.values, dtype=torch.float64) for p in gradient.parameters}
        nets = len(gradient.parameters[0].values)
        self.counts = torch.zeros(nets, 1, dtype=torch.float64, device=gradient.parameters[0].values.device)
        self.buffers: dict[int, dict[str, Tensor]] = {}  # of nets that are done

    def moments(self, span: range) -> Collection[int]:
        return every_nth_step(span, self.first, self.every)

    @torch.no_grad()
    def observe(self, context: StepContext) -> None:
        awake = context.awake()
        for p in self.gradient.parameters:
            self.sums[p.name] += torch.where(awake, p.values.double(), 0)
        self.counts += awake

    def improved(self, nets: Sequence[int]) -> None:
        pass

    def finish(self, nets: Sequence[int], data: Callable[[], Iterator[Batch]]) -> None:
        averaged_nets = [k for k in nets if bool(self.counts[k] > 0)]
        if len(averaged_nets) < len(nets):
            warnings.warn("it ended before averaging began, at its last weights: lower start_at", stacklevel=2)
        self.buffers |= refresh_buffers(self.setup.problem, self._beliefs(), averaged_nets, data)

    def _beliefs(self) -> Beliefs:
        means = {
            p.name: torch.where(self.counts > 0, self.sums[p.name] / self.counts.clamp_min(1), p.values.double()).to(
                p.values
            )
            for p in self.gradient.parameters
        }
        return self.gradient.beliefs(means)

    def beliefs(self) -> Beliefs:
        """At the mean; of a net that was not observed yet, at its weights."""
        return BeliefsWithBuffers(self._beliefs(), self.buffers)

    def state(self) -> State:
        sums = {f"sums.{k}": t for k, t in self.sums.items()}
        return State({**sums, "counts": self.counts}, numbers={"first": self.first})

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        restore(self.state().tensors, tensors)
        if bool(self.counts.any()):  # what has begun has begun, however many epochs there are to be now
            self.first = numbers["first"]


average = Average
EXAMPLES = {"average": (Average(start_at=0.0),)}
