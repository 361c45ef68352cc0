"""What came of a game, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.bandits.agent import Agent
from doxa.bandits.bandit import Bandit
from doxa.errors import BadInput, did_you_mean, require_whole
from doxa.predict.belief import Belief


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an agent met and did in T steps; every curve is made of that.

    regret_T = Σ_{t ≤ T} (r_t(oracle) − r_t(agent)),  the oracle taking argmaxₐ E[r | x_t, a]
    """

    bandit: Bandit
    agent: Agent
    rows: Tensor  # [T]: what came
    pays: Tensor  # [T, A]: what each action would have paid
    taken: Tensor  # [T]: what was done
    trouble: str | None = None  # where the agent diverged, how
    belief: Belief | None = None

    @property
    def best(self) -> Tensor:
        """The oracle's actions [T]."""
        return self.bandit.best[self.rows]

    @property
    def regret(self) -> Tensor:
        """Cumulative regret [T] with the pay-offs as they fell, the oracle's by the same coin."""
        return _cumulative_regret(self.pays, self.best, self.taken)

    @property
    def expected_regret(self) -> Tensor:
        """Cumulative regret [T] with every pay-off at its mean: the same on average, with less noise."""
        return _cumulative_regret(self.bandit.expected[self.rows], self.best, self.taken)

    def taking(self, action: str) -> Tensor:
        """Whether this action was taken, step by step [T]."""
        return self.taken == self._action_number(action)

    def false_positives(self, action: str) -> Tensor:
        """How often this action had been taken where another was best [T]."""
        return (self.taking(action) & (self.best != self._action_number(action))).cumsum(0)

    def false_negatives(self, action: str) -> Tensor:
        """How often another action had been taken where this one was best [T]."""
        return (~self.taking(action) & (self.best == self._action_number(action))).cumsum(0)

    def rates(self, action: str, window: int) -> dict[str, Tensor]:
        """The share of an action in windows of steps [T // window]: of all steps, where it was best, where it was not.

        NaN where a window has no such step.
        """
        taken, is_best = self.taking(action).double(), (self.best == self._action_number(action)).double()
        full = len(taken) // require_whole("window", window) * window
        if full == 0:
            raise BadInput(f"window={window} steps, but only {len(taken)} were played; choose a shorter one")
        masks = {"all": torch.ones_like(is_best), "best": is_best, "not_best": 1 - is_best}
        return {
            name: (taken * mask)[:full].view(-1, window).sum(1) / mask[:full].view(-1, window).sum(1)
            for name, mask in masks.items()
        }

    def _action_number(self, action: str) -> int:
        if action not in self.bandit.actions:
            raise BadInput(f"there is no action {action!r}{did_you_mean(str(action), self.bandit.actions)}")
        return self.bandit.actions.index(action)


def _cumulative_regret(pays: Tensor, best: Tensor, taken: Tensor) -> Tensor:
    """What others than the best actions had cost by each step, in double precision."""
    pays = pays.double()
    return (pays.gather(1, best[:, None]) - pays.gather(1, taken[:, None]))[:, 0].cumsum(0)
