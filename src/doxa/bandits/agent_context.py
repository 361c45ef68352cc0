"""What a policy sees, and what it must be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.bandits.replay import Replay
from doxa.contracts import Problem
from doxa.engine.contracts import Beliefs, Gradient, State
from doxa.random.philox import Stream
from doxa.weights.layout import autocast_context, call, module_mode

# From a net's weights, buffers and rows to what is wanted of it.
NetFunction = Callable[[Mapping[str, Tensor], Mapping[str, Tensor], Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class AgentContext:
    """Agents at work: M of them with `nets` nets each, K in all, their memories, and all that a net may be shown."""

    problem: Problem
    gradient: Gradient
    replay: Replay
    inputs: Tensor  # [cells, D]
    nets: int
    actions: int

    @property
    def agents(self) -> int:
        return len(self.beliefs.mean) // self.nets

    def repeat_per_net(self, per_agent: Tensor) -> Tensor:
        """A row for each net [K, ·], of one for each agent [M, ·]."""
        return per_agent if self.nets == 1 else per_agent.repeat_interleave(self.nets, 0)

    @property
    def buffers(self) -> dict[str, Tensor]:
        """Every net's buffers [K, ·], as they are."""
        tensors = self.gradient.state().tensors.items()
        return {k.removeprefix("buffers."): b for k, b in tensors if k.startswith("buffers.")}

    @functools.cached_property
    def beliefs(self) -> Beliefs:
        """What is believed of every net, as it is."""
        return self.gradient.beliefs()

    def forward(self, function: NetFunction, flat: Tensor, x: Tensor) -> Tensor:
        """What each net, with weights [K, P], answers about its rows x [K, n, D], not as a net that learns."""
        weights = self.problem.layout.weights(flat)
        with (
            torch.no_grad(),
            module_mode(self.problem.net, training=False),
            autocast_context(x.device, self.problem.autocast),
        ):
            if self.problem.vectorized:
                return torch.vmap(function)(weights, self.buffers, x)
            net_indices = range(len(flat))
            weights_and_buffers = [
                ({n: w[k] for n, w in weights.items()}, {n: b[k] for n, b in self.buffers.items()}) for k in net_indices
            ]
            return torch.stack([function(*weights_and_buffers[k], x[k]) for k in net_indices])

    def rewards(self, flat: Tensor, x: Tensor) -> Tensor:
        """The mean reward that each net, with weights [K, P], expects of its rows x [K, n, D]: [K, n]."""
        outputs = self.forward(self.outputs, flat, x).to(flat.dtype)
        return self.problem.likelihood.mean(outputs, self.problem.layout.parameters(flat)).reshape(x.shape[:2])

    def outputs(self, weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """A net's own outputs."""
        return call(self.problem.net, weights, buffers, x)


class ActionSelector(Protocol):
    """A policy at work for M agents."""

    def choose(self, x: Tensor, stream: Stream) -> Tensor:
        """The action of each agent [M], of inputs x [M, A, D] that show it each action; without a word from the CPU."""
        ...

    def refresh(self, count: Tensor) -> None:
        """What must be worked out anew before a step, where the CPU has a say; `count` [1] things are remembered."""
        ...

    def state(self) -> State:
        """Every tensor that a resumed run needs."""
        ...


class BanditPolicy(Protocol):
    """A way to act on beliefs; frozen settings."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """What policies must have in common to work as one program."""
        ...

    def start(self, context: AgentContext, fleet: Sequence[Any]) -> ActionSelector:
        """Set the policies of a fleet to work; `self` is the first."""
        ...
