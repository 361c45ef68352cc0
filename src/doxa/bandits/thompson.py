"""Thompson sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.bandits.agent_context import ActionSelector, AgentContext
from doxa.bandits.bandit import uniform_integers
from doxa.engine.contracts import State
from doxa.errors import BadInput, require_whole
from doxa.random import streams
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
        if require_whole("draws", self.draws) > streams.BANDIT_MAX_DRAWS:
            raise BadInput(f"draws must be at most {streams.BANDIT_MAX_DRAWS} a decision, got {self.draws}")

    @property
    def kind(self) -> tuple[Any, ...]:
        return (type(self),)

    def start(self, context: AgentContext, fleet: Sequence[Thompson]) -> ActionSelector:
        if not callable(getattr(context.beliefs, "draw", None)):
            raise BadInput(
                f"Thompson sampling needs draws from what is believed, and {type(context.beliefs).__name__} has no "
                "draw(stream); use a learner of doxa.learners, or the greedy policy"
            )
        masks = len(getattr(context.beliefs.posterior(0), "masked", ()))  # dropout's, each with a stream of its own
        if masks > streams.BANDIT_STREAMS_PER_DRAW and max(policy.draws for policy in fleet) > 1:
            raise BadInput(
                f"the net has {masks:,} weights with dropout, and draws of more than {streams.BANDIT_STREAMS_PER_DRAW} "
                "masks would share their noise: use thompson(draws=1), or a learner of another kind"
            )
        return ThompsonSelector(context, [policy.draws for policy in fleet])


class ThompsonSelector:
    """Agents that draw weights for every decision, as often as the one that draws most; each heeds its own number."""

    def __init__(self, context: AgentContext, draws: Sequence[int]) -> None:
        self.context, self.draws = context, max(draws)
        counts = torch.tensor(draws, device=context.inputs.device)
        self.draw_mask = torch.arange(self.draws, device=counts.device)[:, None] < counts  # [S, M]

    def choose(self, x: Tensor, stream: Stream) -> Tensor:
        context = self.context
        x = context.repeat_per_net(x)
        weight_draws = [
            context.beliefs.draw(stream.with_number(streams.BANDIT_DRAWS + streams.BANDIT_STREAMS_PER_DRAW * s))
            for s in range(self.draws)
        ]
        expected = torch.stack([context.rewards(flat, x) for flat in weight_draws])
        if context.nets > 1:
            expected = self._choose_members(expected, stream)
        return torch.where(self.draw_mask[:, :, None], expected, 0).sum(0).argmax(1)

    def _choose_members(self, expected: Tensor, stream: Stream) -> Tensor:
        """Of what an ensemble's nets expect in each draw [S, K, A], that of one member of each agent [S, M, A]."""
        context = self.context
        u = torch.empty(context.agents, self.draws, device=expected.device)
        fill_uniform(u, Stream(stream.seeds[:: context.nets], stream.step, streams.BANDIT_POLICY))
        member = uniform_integers(u.T, torch.full_like(u.T, context.nets, dtype=torch.int64))
        by_member = expected.view(self.draws, context.agents, context.nets, -1)
        index = member[:, :, None, None].expand(-1, -1, 1, by_member.shape[-1])
        return by_member.gather(2, index)[:, :, 0]

    def refresh(self, count: Tensor) -> None:
        pass

    def state(self) -> State:
        return State()
