"""The agents at the mushrooms: as their authors ran them and as the document has them, and how long they play."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import torch
from torch import nn

from doxa import bandits, kl_weights
from doxa.contracts import Schedule
from doxa.learners import point, variational
from doxa.likelihoods import gaussian
from doxa.nets import mlp
from doxa.posteriors import mean_field
from doxa.priors import scale_mixture
from doxa.random.keys import isolated_rng, reseed
from doxa.rates import step
from doxa_replicate.contract import ReplicationOptions

HIDDEN = (100, 100)
LIKELIHOOD = gaussian(1.0)  # of a reward, for every agent: of a point it is half the squared error
START = mean_field(mean=(-0.2, 0.2), rho=(-5.0, -4.0))
NARROW_SCALE, WIDE_SHARE, LEARNING_SAMPLES = math.exp(-6), 0.5, 2  # of the prior, and draws a step of learning
HALVING = 5000
KL_SHARES: dict[bool, Schedule] = {False: kl_weights.uniform(), True: kl_weights.geometric()}


@dataclass(frozen=True)
class GameSize:
    """How long a game is, and what is learned in each of its steps."""

    steps: int
    updates: int
    batch_size: int
    memory: int
    replacement: bool  # whether minibatches are drawn at random, or are one pass over the memory

    def scale_steps(self, steps: int) -> int:
        """So many of the full game's steps, in proportion to this one's."""
        return max(1, steps * self.steps // 50_000)

    @property
    def one_pass(self) -> GameSize:
        """The same game with one pass over the memory in each step."""
        return replace(self, updates=self.memory // self.batch_size, replacement=False)


QUICK = GameSize(steps=60, updates=2, batch_size=32, memory=128, replacement=True)
FULL = GameSize(steps=50_000, updates=16, batch_size=64, memory=4096, replacement=True)


@dataclass(frozen=True)
class ThompsonSetting:
    """A belief about the weights, acted on by draws."""

    lr: float = 1e-4
    halving: int = HALVING
    wide: float = 1.0
    draws: int = 2
    per_action: bool = False  # whether each action is judged by draws of its own
    geometric: bool = False  # the KL's split over a step's updates: halving from one to the next, or even

    def build_agent(self, name: str, seed: int, size: GameSize) -> bandits.agent:
        learner = variational(
            scale_mixture(WIDE_SHARE, self.wide, NARROW_SCALE),
            samples=LEARNING_SAMPLES,
            posterior=START,
            kl_weight=KL_SHARES[self.geometric],
        )
        policy = bandits.thompson(self.draws, self.per_action)
        return bandits.agent(
            learner, policy, seed, halving_schedule(self.lr, size.scale_steps(self.halving)), name=name
        )


@dataclass(frozen=True)
class GreedySetting:
    """One net, acted on as if it were right but for a share ε of the steps."""

    lr: float = 1e-4
    halving: int = HALVING
    epsilon: float = 0.0

    def build_agent(self, name: str, seed: int, size: GameSize) -> bandits.agent:
        lr = halving_schedule(self.lr, size.scale_steps(self.halving))
        return bandits.agent(point(), bandits.greedy(self.epsilon), seed, lr, name=name)


@dataclass(frozen=True)
class NeuralLinearSetting:
    """One net whose last layer has an exact posterior."""

    lr: float = 1e-4
    halving: int = HALVING
    scale: float = 1.0
    every: int = 20  # steps of the game from one posterior to the next

    def build_agent(self, name: str, seed: int, size: GameSize) -> bandits.agent:
        lr = halving_schedule(self.lr, size.scale_steps(self.halving))
        return bandits.agent(point(), bandits.neural_linear(self.scale, self.every), seed, lr, name=name)


AgentSetting = ThompsonSetting | GreedySetting | NeuralLinearSetting


@functools.cache
def halving_schedule(lr: float, halving: int) -> Schedule:
    """The document's schedule: halved every so many steps."""
    return step(lr, every=halving)


BBB, GREEDY, NEURAL_LINEAR = "BBB", "greedy", "neural linear"
EPSILONS = {"greedy, ε = 1 %": 0.01, "greedy, ε = 5 %": 0.05}
GREEDY_AGENTS = {GREEDY: GreedySetting(), **{name: GreedySetting(epsilon=share) for name, share in EPSILONS.items()}}
BBB_AS_WRITTEN = ThompsonSetting()
BBB_AS_RUN = ThompsonSetting(per_action=True, geometric=True)
SLOW_AGENT, SLOW_RATE = "BBB, lr 1e-5", 1e-5  # of figure 27 a
WIDE_SCALES = (0.1, 0.3, 0.75, 1.0, 3.0)  # of figures 26 and 27 b


def scale_names(setting: ThompsonSetting) -> dict[float, str]:
    """The agents of figures 26 and 27 b by the prior's wide scale, that of the main figures among them."""
    scales = sorted({*WIDE_SCALES, setting.wide})
    return {wide: BBB if wide == setting.wide else f"BBB, σ₁ = {wide:g}" for wide in scales}


def varied_settings(setting: ThompsonSetting) -> dict[str, AgentSetting]:
    """The agents of figures 26 and 27 that are not in the main figures: other priors, and a lower rate."""
    others = {name: replace(setting, wide=wide) for wide, name in scale_names(setting).items() if name != BBB}
    return {SLOW_AGENT: replace(setting, lr=SLOW_RATE), **others}


def game_size(options: ReplicationOptions) -> GameSize:
    size: GameSize = options.by_size(QUICK, FULL)
    return size


def start_net(inputs: int, seed: int) -> nn.Module:
    """The document's net, started by a seed."""
    with isolated_rng(torch.device("cpu")):
        reseed((seed, "mushrooms"))
        return mlp(inputs, HIDDEN, 1)
