"""Thompson sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.bandits.bandit import below
from doxa.bandits.scene import A_DRAW, DRAWS, MOST_DRAWS, OWN, Deciding, Scene
from doxa.engine.contracts import State
from doxa.errors import BadInput, whole
from doxa.random.philox import Stream, fill_uniform


@dataclass(frozen=True)
class Thompson:
    """The action that pays most by a draw from what is believed, so that each is taken as often as it may be best.

    a = argmaxₐ (1/S) Σₛ E[r | x, a, wₛ],  wₛ ~ q

    One draw is Thompson's own; the mean of several explores less. A draw of an ensemble is one of a member; a point
    has but one, so that it explores nothing.
    Thompson (1933), On the likelihood that one unknown probability exceeds another in view of the evidence of two
    samples; Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    draws: int = 1

    def __post_init__(self) -> None:
        if whole("draws", self.draws) > MOST_DRAWS:
            raise BadInput(f"draws must be at most {MOST_DRAWS} a decision, got {self.draws}")

    @property
    def kind(self) -> tuple[Any, ...]:
        return (Thompson,)

    def start(self, scene: Scene, fleet: Sequence[Thompson]) -> Deciding:
        if not callable(getattr(scene.beliefs, "draw", None)):
            raise BadInput(
                f"Thompson sampling needs draws from what is believed, and {type(scene.beliefs).__name__} has no "
                "draw(stream); use a learner of doxa.learners, or the greedy policy"
            )
        return ThompsonAtWork(scene, [own.draws for own in fleet])


class ThompsonAtWork:
    """Agents that draw weights for every decision, as often as the one that draws most; each heeds its own number."""

    def __init__(self, scene: Scene, draws: Sequence[int]) -> None:
        self.scene, self.draws = scene, max(draws)
        counts = torch.tensor(draws, device=scene.inputs.device)
        self.heeds = torch.arange(self.draws, device=counts.device)[:, None] < counts  # [S, M]

    def choose(self, x: Tensor, stream: Stream) -> Tensor:
        scene = self.scene
        x = scene.of_nets(x)
        drawn = [scene.beliefs.draw(stream.other(DRAWS + A_DRAW * s)) for s in range(self.draws)]
        expected = torch.stack([scene.rewards(flat, x) for flat in drawn])
        if scene.nets > 1:
            expected = self._members(expected, stream)
        return torch.where(self.heeds[:, :, None], expected, 0).sum(0).argmax(1)

    def _members(self, expected: Tensor, stream: Stream) -> Tensor:
        """Of what an ensemble's nets expect in each draw [S, K, A], that of one member of each agent [S, M, A]."""
        scene = self.scene
        u = torch.empty(scene.agents, self.draws, device=expected.device)
        fill_uniform(u, Stream(stream.seeds[:: scene.nets], stream.step, OWN))
        member = below(u.T, torch.full_like(u.T, scene.nets, dtype=torch.int64))
        each = expected.view(self.draws, scene.agents, scene.nets, -1)
        index = member[:, :, None, None].expand(-1, -1, 1, each.shape[-1])
        return each.gather(2, index)[:, :, 0]

    def refresh(self, count: Tensor) -> None:
        pass

    def state(self) -> State:
        return State()
