"""The greedy policy, and the ε-greedy one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.bandits.agent_context import ActionSelector, AgentContext
from doxa.bandits.bandit import uniform_integers
from doxa.engine.contracts import State
from doxa.errors import BadInput
from doxa.random import streams
from doxa.random.philox import Stream, fill_uniform


@dataclass(frozen=True)
class Greedy:
    """The action that pays most by what is believed now; with probability `epsilon` any action at random.

    a = argmaxₐ E[r | x, a, w̄] with probability 1 − ε,  else a ~ uniform

    w̄ is the posterior's mean; of an ensemble, the members' predictions are averaged.
    Sutton & Barto (2018), Reinforcement learning, section 2.2.
    """

    epsilon: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise BadInput(f"epsilon is a probability, from 0 to 1; got {self.epsilon}")

    @property
    def kind(self) -> tuple[Any, ...]:
        return (Greedy,)

    def start(self, context: AgentContext, fleet: Sequence[Greedy]) -> ActionSelector:
        return GreedySelector(context, [policy.epsilon for policy in fleet])


class GreedySelector:
    """Greedy agents, each with its ε."""

    def __init__(self, context: AgentContext, epsilons: Sequence[float]) -> None:
        self.context, self.explores = context, any(epsilons)
        self.epsilons = torch.tensor(epsilons, device=context.inputs.device)

    def choose(self, x: Tensor, stream: Stream) -> Tensor:
        context = self.context
        expected = context.rewards(context.beliefs.mean, context.repeat_per_net(x))
        best_actions = expected.view(context.agents, context.nets, -1).mean(1).argmax(1)
        if not self.explores:
            return best_actions
        u = torch.empty(context.agents, 2, device=x.device)
        fill_uniform(u, Stream(stream.seeds[:: context.nets], stream.step, streams.BANDIT_POLICY))
        random_actions = uniform_integers(u[:, 1], torch.full_like(best_actions, x.shape[1]))
        return torch.where(u[:, 0] < self.epsilons, random_actions, best_actions)

    def refresh(self, count: Tensor) -> None:
        pass

    def state(self) -> State:
        return State()
