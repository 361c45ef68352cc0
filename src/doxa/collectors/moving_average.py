"""The moving average of the weights along the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.collectors.statistics import BeliefsWithBuffers, refresh_buffers, require_weights
from doxa.contracts import Batch
from doxa.engine.context import StepContext
from doxa.engine.contracts import Beliefs, CollectorSetup, Gradient, State
from doxa.engine.states import restore
from doxa.errors import require_share


@dataclass(frozen=True)
class MovingAverage:
    """The mean of the weights after every step, older ones counting less and less.

    w̄ₜ = (1 − d) Σ_{s ≤ t} d^{t−s} wₛ / (1 − dᵗ)

    Where the first weights count is divided out, as Adam does it. Of nets with BatchNorm the statistics are taken anew
    at the mean, in one pass over the data when all is done; until then those of the last weights serve.
    Tarvainen & Valpola (2017), Mean teachers are better role models.
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        require_share("decay", self.decay)

    def start(self, gradient: Gradient, setup: CollectorSetup) -> MovingAverageCollector:
        """Nothing averaged yet."""
        require_weights(gradient, "a moving average")
        return MovingAverageCollector(self, gradient, setup)


class MovingAverageCollector:
    """Decaying sums of the parameters, and how many steps each net has taken; part of a recorded step."""

    def __init__(self, settings: MovingAverage, gradient: Gradient, setup: CollectorSetup) -> None:
        self.decay, self.gradient, self.setup = settings.decay, gradient, setup
        self.sums = {p.name: torch.zeros_like(p.values) for p in gradient.parameters}
        nets = len(gradient.parameters[0].values)
        self.counts = torch.zeros(nets, 1, dtype=torch.float64, device=gradient.parameters[0].values.device)
        self.buffers: dict[int, dict[str, Tensor]] = {}  # of nets that are done

    def moments(self, span: range) -> Collection[int]:
        return span

    @torch.no_grad()
    def observe(self, context: StepContext) -> None:
        awake = context.awake()
        for p in self.gradient.parameters:
            running_sum = self.sums[p.name]
            running_sum.copy_(torch.where(awake, torch.lerp(p.values, running_sum, self.decay), running_sum))
        self.counts += awake

    def improved(self, nets: Sequence[int]) -> None:
        pass

    def finish(self, nets: Sequence[int], data: Callable[[], Iterator[Batch]]) -> None:
        averaged_nets = [k for k in nets if bool(self.counts[k] > 0)]
        self.buffers |= refresh_buffers(self.setup.problem, self._beliefs(), averaged_nets, data)

    def _beliefs(self) -> Beliefs:
        share = 1 - self.decay**self.counts
        means = {
            p.name: torch.where(share > 0, (self.sums[p.name] / share).to(p.values), p.values)
            for p in self.gradient.parameters
        }
        return self.gradient.beliefs(means)

    def beliefs(self) -> Beliefs:
        """At the mean; of a net that was not observed yet, at its weights."""
        return BeliefsWithBuffers(self._beliefs(), self.buffers)

    def state(self) -> State:
        return State({**{f"sums.{k}": t for k, t in self.sums.items()}, "counts": self.counts})

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        restore(self.state().tensors, tensors)


moving_average = MovingAverage
EXAMPLES = {"moving_average": (MovingAverage(0.9),)}
