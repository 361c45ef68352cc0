"""Who plays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from doxa.bandits.agent_context import BanditPolicy
from doxa.contracts import Schedule
from doxa.engine.contracts import Learner
from doxa.errors import BadInput, require_positive, require_whole


@dataclass(frozen=True)
class Agent:
    """One player: how it learns from what it did, and how it acts on what it believes.

    min_q F/N = −(1/N) Σ_{i remembered} E_q log p(rᵢ/c | xᵢ, aᵢ, w) + (β/N) KL(q‖p)

    `learner` is one of doxa.learners, `policy` one of doxa.bandits; rewards are divided by `reward_scale`, c,
    before they are learned. A schedule `lr`, and the learner's KL weight β, count environment steps as epochs; β may
    differ from update to update of a step, the epoch's minibatches. What happens to an agent, and its own random
    numbers, are functions of its `seed`.
    Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    learner: Learner
    policy: BanditPolicy
    seed: int = 0
    lr: float | Schedule = 1e-4
    reward_scale: float = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.learner, type) or not hasattr(self.learner, "start"):
            raise BadInput(
                f"learner must be one of doxa.learners, with brackets: e.g. doxa.learners.point(); got {self.learner!r}"
            )
        if isinstance(self.policy, type) or not hasattr(self.policy, "start") or hasattr(self.policy, "kl_weight"):
            raise BadInput(
                "policy must be one of doxa.bandits, with brackets: e.g. thompson(); got " + repr(self.policy)
            )
        require_whole("seed", self.seed, least=None)
        require_positive("reward_scale", self.reward_scale)
        if not callable(self.lr):
            require_positive("lr", self.lr)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What agents must have in common to play as one program."""
        return self.learner.kind, type(self.learner.prior), self.policy.kind
