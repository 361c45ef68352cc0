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

    a = argmaxₐ (1/S) Σₛ E[r | x, a, wₛ],  wₛ ~ q;  `per_action`, of draws w_sa of its own for every action

    One draw is Thompson's own; the mean of several explores less, draws of their own for every action more. A draw of
    an ensemble is one of a member; a point has but one, so that it explores nothing.
    Thompson (1933), On the likelihood that one unknown probability exceeds another in view of the evidence of two
    samples; Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    draws: int = 1
    per_action: bool = False

    def __post_init__(self) -> None:
        if require_whole("draws", self.draws) > streams.BANDIT_MAX_DRAWS:
            raise BadInput(f"draws must be at most {streams.BANDIT_MAX_DRAWS} a decision, got {self.draws}")

    @property
    def kind(self) -> tuple[Any, ...]:
        return type(self), self.per_action

    def start(self, context: AgentContext, fleet: Sequence[Thompson]) -> ActionSelector:
        if not callable(getattr(context.beliefs, "draw", None)):
            raise BadInput(
                f"Thompson sampling needs draws from what is believed, and {type(context.beliefs).__name__} has no "
                "draw(stream); use a learner of doxa.learners, or the greedy policy"
            )
        most = max(policy.draws for policy in fleet) * (context.actions if self.per_action else 1)
        if most > streams.BANDIT_MAX_DRAWS:
            raise BadInput(
                f"a decision takes at most {streams.BANDIT_MAX_DRAWS} draws, and {most // context.actions} for each of "
                f"{context.actions} actions are {most}"
            )
        masks = len(getattr(context.beliefs.posterior(0), "masked", ()))  # dropout's, each with a stream of its own
        if masks > streams.BANDIT_STREAMS_PER_DRAW and most > 1:
            raise BadInput(
                f"the net has {masks:,} weights with dropout, and draws of more than {streams.BANDIT_STREAMS_PER_DRAW} "
                "masks would share their noise: use thompson(draws=1), or a learner of another kind"
            )
        return ThompsonSelector(context, [policy.draws for policy in fleet], context.actions if self.per_action else 1)


class ThompsonSelector:
    """Agents that draw weights for every decision, as often as the one that draws most; each heeds its own number.

    The actions are judged in so many groups, each by draws of its own.
    """

    def __init__(self, context: AgentContext, draws: Sequence[int], groups: int) -> None:
        self.context, self.draws, self.groups = context, max(draws), groups
        counts = torch.tensor(draws, device=context.inputs.device)
        self.draw_mask = torch.arange(self.draws, device=counts.device)[:, None] < counts  # [S, M]

    def choose(self, x: Tensor, stream: Stream) -> Tensor:
        context = self.context
        groups = context.repeat_per_net(x).chunk(self.groups, 1)
        expected = [context.rewards(self._draw(stream, d), groups[d % self.groups]) for d in range(self.total)]
        if context.nets > 1:
            members = self._draw_members(stream)
            by_member = [e.view(context.agents, context.nets, -1) for e in expected]
            agents = torch.arange(context.agents, device=x.device)
            expected = [e[agents, members[:, d]] for d, e in enumerate(by_member)]
        by_draw = torch.cat(expected, 1).view(context.agents, self.draws, -1).transpose(0, 1)  # [S, M, A]
        return torch.where(self.draw_mask[:, :, None], by_draw, 0).sum(0).argmax(1)

    @property
    def total(self) -> int:
        """Draws of a decision, for all groups of actions in turn."""
        return self.draws * self.groups

    def _draw(self, stream: Stream, number: int) -> Tensor:
        """Weights [K, P] of a draw."""
        draw_stream = stream.with_number(streams.BANDIT_DRAWS + streams.BANDIT_STREAMS_PER_DRAW * number)
        return self.context.beliefs.draw(draw_stream)

    def _draw_members(self, stream: Stream) -> Tensor:
        """Which of an ensemble's nets is heard in each draw [M, draws]."""
        context = self.context
        u = torch.empty(context.agents, self.total, device=self.draw_mask.device)
        fill_uniform(u, Stream(stream.seeds[:: context.nets], stream.step, streams.BANDIT_POLICY))
        return uniform_integers(u, torch.full_like(u, context.nets, dtype=torch.int64))

    def refresh(self, count: Tensor) -> None:
        pass

    def state(self) -> State:
        return State()
