"""The greedy policy, and the ε-greedy one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.bandits.bandit import below
from doxa.bandits.scene import OWN, Deciding, Scene
from doxa.engine.contracts import State
from doxa.errors import BadInput
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

    def start(self, scene: Scene, fleet: Sequence[Greedy]) -> Deciding:
        return GreedyAtWork(scene, [own.epsilon for own in fleet])


class GreedyAtWork:
    """Greedy agents, each with its ε."""

    def __init__(self, scene: Scene, epsilons: Sequence[float]) -> None:
        self.scene, self.explores = scene, any(epsilons)
        self.epsilons = torch.tensor(epsilons, device=scene.inputs.device)

    def choose(self, x: Tensor, stream: Stream) -> Tensor:
        scene = self.scene
        expected = scene.rewards(scene.beliefs.mean, scene.of_nets(x))
        best = expected.view(scene.agents, scene.nets, -1).mean(1).argmax(1)
        if not self.explores:
            return best
        u = torch.empty(scene.agents, 2, device=x.device)
        fill_uniform(u, Stream(stream.seeds[:: scene.nets], stream.step, OWN))
        blind = below(u[:, 1], torch.full_like(best, x.shape[1]))
        return torch.where(u[:, 0] < self.epsilons, blind, best)

    def refresh(self, count: Tensor) -> None:
        pass

    def state(self) -> State:
        return State()
