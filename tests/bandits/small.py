"""A small bandit, nets for it, and one that knows it all."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from doxa import bandits, learners, likelihoods, noise, posteriors, priors

ROWS, COLUMNS = 30, 4


def bandit(actions: int = 3) -> bandits.Bandit:
    """Rewards that depend on context and action, with a coin's noise of ±1 on the first action alone."""
    source = torch.Generator().manual_seed(5)
    contexts = torch.randn(ROWS, COLUMNS, generator=source)
    expected = contexts @ torch.randn(COLUMNS, actions, generator=source)

    def pay(rows: Tensor, u: Tensor) -> Tensor:
        noise = torch.zeros(len(rows), actions)
        noise[:, 0] = torch.where(u[:, 0] < 0.5, -1.0, 1.0)
        return expected[rows] + noise

    return bandits.Bandit("small", contexts, expected, pay, tuple("abcde"[:actions]))


def known(actions: int = 2) -> bandits.Bandit:
    """A bandit whose contexts are the expected rewards themselves."""
    expected = torch.randn(ROWS, actions, generator=torch.Generator().manual_seed(8))
    return bandits.Bandit("known", expected, expected, lambda rows, u: expected[rows], tuple("abcde"[:actions]))


class Knows(nn.Module):
    """The expected reward of the action in a `known` bandit, exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        rewards, action = x.chunk(2, 1)
        return self.one * (rewards * action).sum(1, keepdim=True)


def net(seed: int = 0, inputs: int = COLUMNS + 3) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, 1)).double()


GAUSSIAN = priors.gaussian(1.0)
START = posteriors.mean_field(scale=0.05)
LEARNERS: dict[str, Any] = {
    "point": learners.point(),
    "map": learners.point(GAUSSIAN),
    "shared": learners.variational(priors.scale_mixture(0.5, 1.0, 0.1), samples=2, posterior=START),
    "local": learners.variational(GAUSSIAN, noise.local, posterior=START),
    "per layer": learners.variational(GAUSSIAN, posterior=posteriors.mean_field("layer", scale=0.05)),
    "dropout": learners.dropout(0.3, 0.1),
    "ensemble": learners.ensemble(learners.point(), 3),
    "mixture": learners.ensemble(learners.variational(GAUSSIAN, noise.local, posterior=START), 2),
}
POLICIES: dict[str, Any] = {
    "greedy": bandits.greedy(),
    "curious": bandits.greedy(0.2),
    "thompson": bandits.thompson(),
    "thompson, two": bandits.thompson(2),
    "thompson, apart": bandits.thompson(2, per_action=True),
    "neural linear": bandits.neural_linear(2.0, every=3),
}
# Every learner with every policy that takes it.
PAIRS = [
    (learner, policy)
    for learner in LEARNERS
    for policy in POLICIES
    if not (policy == "neural linear" and LEARNERS[learner].nets > 1)
]
RULES: dict[str, Any] = {
    "likelihood": likelihoods.gaussian(0.5),
    "steps": 12,
    "updates": 2,
    "batch_size": 8,
    "memory": 20,
    "progress": False,
}


def play_small(agents: Any, **options: Any) -> list[bandits.Outcome]:
    return bandits.play([net(agent.seed) for agent in agents], bandit(), agents, **{**RULES, **options})


def numbers(outcome: bandits.Outcome) -> list[Tensor]:
    """What an agent believes at the end."""
    assert outcome.belief is not None
    posterior: Any = outcome.belief.posterior
    parts = getattr(posterior, "members", (posterior,))
    return [t for p in parts for t in vars(p).values() if isinstance(t, Tensor)]
