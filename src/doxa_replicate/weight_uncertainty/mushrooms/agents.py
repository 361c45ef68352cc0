"""The agents at the mushrooms: those of the document, and a grid of each kind to choose from."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
from torch import nn

from doxa import bandits
from doxa.contracts import Likelihood, Schedule
from doxa.learners import point, variational
from doxa.likelihoods import gaussian, gaussian_per_input
from doxa.nets import mlp
from doxa.posteriors import mean_field
from doxa.priors import scale_mixture
from doxa.random.keys import isolated_rng, reseed
from doxa.rates import step
from doxa_replicate.contract import ReplicationOptions

HIDDEN = (100, 100)
# How the noise of scaled rewards is taken: of one size, or told by the net for each mushroom and action.
FIXED, PER_INPUT = "fixed", "told"
NOISE_MODELS: dict[str, tuple[Likelihood, int]] = {
    FIXED: (gaussian(1.0), 1),
    PER_INPUT: (gaussian_per_input(least=0.1), 2),
}
# Where beliefs start: at the document's uniform means, or at those of the net as torch starts it.
STARTS = {"uniform": mean_field(mean=(-0.2, 0.2), rho=(-5.0, -4.0)), "net": mean_field(rho=(-5.0, -4.0))}
NARROW_SCALE, WIDE_SHARE, LEARNING_SAMPLES = math.exp(-6), 0.5, 2  # of the prior, and draws a step of learning
HALVING = 5000


@dataclass(frozen=True)
class GameSize:
    """How long, and how hard."""

    steps: int
    updates: int
    batch_size: int
    memory: int
    tuning: tuple[int, ...]  # seeds that settings are chosen on, and that no figure reports

    def scale_steps(self, steps: int) -> int:
        """So many of the full game's steps, in proportion to this one's."""
        return max(1, steps * self.steps // 50_000)


QUICK = GameSize(steps=100, updates=2, batch_size=32, memory=256, tuning=(100,))
FULL = GameSize(steps=50_000, updates=16, batch_size=64, memory=4096, tuning=(100, 101))


@dataclass(frozen=True)
class ThompsonSetting:
    """A belief about the weights, acted on by draws."""

    lr: float = 1e-4
    halving: int = HALVING
    wide: float = 1.0
    reward_scale: float = 1.0
    draws: int = 2
    start: str = "uniform"
    noise: str = FIXED

    def build_agent(self, name: str, seed: int, size: GameSize) -> bandits.agent:
        learner = variational(
            scale_mixture(WIDE_SHARE, self.wide, NARROW_SCALE), samples=LEARNING_SAMPLES, posterior=STARTS[self.start]
        )
        lr = halving_schedule(self.lr, size.scale_steps(self.halving))
        return bandits.agent(learner, bandits.thompson(self.draws), seed, lr, self.reward_scale, name)


@dataclass(frozen=True)
class GreedySetting:
    """One net, acted on as if it were right but for a share ε of the steps."""

    lr: float = 1e-4
    halving: int = HALVING
    reward_scale: float = 1.0
    epsilon: float = 0.0
    noise: str = FIXED

    def build_agent(self, name: str, seed: int, size: GameSize) -> bandits.agent:
        lr = halving_schedule(self.lr, size.scale_steps(self.halving))
        return bandits.agent(point(), bandits.greedy(self.epsilon), seed, lr, self.reward_scale, name)


@dataclass(frozen=True)
class NeuralLinearSetting:
    """One net whose last layer has an exact posterior."""

    lr: float = 1e-4
    halving: int = HALVING
    reward_scale: float = 10.0
    scale: float = 1.0
    every: int = 1  # steps of the game from one posterior to the next
    noise: str = FIXED

    def build_agent(self, name: str, seed: int, size: GameSize) -> bandits.agent:
        lr = halving_schedule(self.lr, size.scale_steps(self.halving))
        policy = bandits.neural_linear(self.scale, self.every)
        return bandits.agent(point(), policy, seed, lr, self.reward_scale, name)


AgentSetting = ThompsonSetting | GreedySetting | NeuralLinearSetting


@functools.cache
def halving_schedule(lr: float, halving: int) -> Schedule:
    """The document's schedule: halved every so many steps."""
    return step(lr, every=halving)


BBB, GREEDY = "BBB", "greedy"
WIDE_SCALES = (0.1, 0.3, 3.0)  # of figure 27 b, beside those of figures 23 and 26
THOMPSON_WRITTEN: dict[str, AgentSetting] = {
    BBB: ThompsonSetting(),
    "BBB, σ₁ = 0.75": ThompsonSetting(wide=0.75),
    "BBB, lr 1e-5": ThompsonSetting(lr=1e-5),
    **{f"BBB, σ₁ = {wide:g}": ThompsonSetting(wide=wide) for wide in WIDE_SCALES},
}
GREEDY_WRITTEN: dict[str, AgentSetting] = {
    GREEDY: GreedySetting(),
    "greedy, ε = 1 %": GreedySetting(epsilon=0.01),
    "greedy, ε = 5 %": GreedySetting(epsilon=0.05),
}
rescaled_thompson = functools.partial(ThompsonSetting, reward_scale=10.0, start="net")
GRIDS: dict[str, tuple[AgentSetting, ...]] = {
    "thompson": (
        ThompsonSetting(halving=2000),
        ThompsonSetting(halving=1000),
        ThompsonSetting(halving=500),
        ThompsonSetting(halving=1000, draws=1),
        ThompsonSetting(halving=1000, draws=8),
        ThompsonSetting(halving=1000, wide=3.0),
        rescaled_thompson(lr=1e-4, halving=1000),
        rescaled_thompson(lr=3e-4, halving=50),
        rescaled_thompson(lr=1e-3, halving=25),
        rescaled_thompson(lr=1e-3, halving=50, noise=PER_INPUT),
        rescaled_thompson(lr=1e-3, halving=100, noise=PER_INPUT, draws=8),
        rescaled_thompson(lr=1e-3, halving=50, wide=0.3, noise=PER_INPUT),
        rescaled_thompson(lr=1e-3, halving=100, wide=0.3, noise=PER_INPUT),
        rescaled_thompson(lr=1e-3, halving=100, wide=0.3, noise=PER_INPUT, draws=1),
        rescaled_thompson(lr=1e-3, halving=100, wide=0.3, noise=PER_INPUT, draws=8),
        rescaled_thompson(lr=1e-3, halving=200, wide=0.3, noise=PER_INPUT),
        rescaled_thompson(lr=1e-3, halving=200, wide=0.3, noise=PER_INPUT, draws=8),
        rescaled_thompson(lr=3e-4, halving=200, wide=0.3, noise=PER_INPUT, draws=8),
        rescaled_thompson(lr=1e-3, halving=100, wide=0.1, noise=PER_INPUT, draws=8),
    ),
    "greedy": (
        GreedySetting(lr=1e-4, halving=2000),
        GreedySetting(lr=1e-4, halving=1000),
        GreedySetting(lr=1e-4, halving=500),
        GreedySetting(lr=1e-4, halving=200),
        GreedySetting(lr=1e-4, halving=50),
        GreedySetting(lr=3e-4, halving=50),
        GreedySetting(lr=3e-4, halving=25),
        GreedySetting(lr=1e-3, halving=12),
        GreedySetting(lr=1e-3, halving=6),
        GreedySetting(lr=1e-4, halving=50, reward_scale=10.0, noise=PER_INPUT),
        GreedySetting(lr=3e-4, halving=25, reward_scale=10.0, noise=PER_INPUT),
        GreedySetting(lr=1e-3, halving=6, reward_scale=10.0, noise=PER_INPUT),
        GreedySetting(lr=1e-3, halving=100, reward_scale=10.0, noise=PER_INPUT),
        GreedySetting(lr=1e-3, halving=200, reward_scale=10.0, noise=PER_INPUT),
        GreedySetting(lr=3e-4, halving=200, reward_scale=10.0, noise=PER_INPUT),
    ),
    "neural-linear": (
        NeuralLinearSetting(lr=1e-4, halving=2000, reward_scale=1.0, every=20),
        NeuralLinearSetting(lr=1e-4, halving=1000, reward_scale=1.0, every=20),
        NeuralLinearSetting(lr=1e-4, halving=1000),
        NeuralLinearSetting(lr=1e-4, halving=50),
        NeuralLinearSetting(lr=3e-4, halving=25),
        NeuralLinearSetting(lr=1e-3, halving=6),
    ),
}
# Greedy agents that explore have schedules of their own: what they learn from is not what greedy ones do.
EPSILON_BY_KIND = {"greedy-1-percent": 0.01, "greedy-5-percent": 0.05}
SLOWER_SCHEDULES = ((1e-4, 3000), (1e-4, 2000), (1e-4, 1000), (3e-5, 5000), (3e-5, 3000), (1e-5, 10_000), (1e-5, 5000))
GRIDS |= {
    kind: tuple(GreedySetting(lr=lr, halving=halving, epsilon=epsilon) for lr, halving in SLOWER_SCHEDULES)
    for kind, epsilon in EPSILON_BY_KIND.items()
}
WRITTEN_SETTINGS = {"thompson": THOMPSON_WRITTEN, "greedy": GREEDY_WRITTEN}
CHOSEN_NAMES = {
    "thompson": "Thompson, chosen",
    "greedy": "greedy, chosen",
    "neural-linear": "neural linear, chosen",
    **{kind: f"greedy, ε = {100 * epsilon:g} %, chosen" for kind, epsilon in EPSILON_BY_KIND.items()},
}


def game_size(options: ReplicationOptions) -> GameSize:
    size: GameSize = options.by_size(QUICK, FULL)
    return size


def describe_setting(setting: AgentSetting) -> str:
    """A setting of a grid in words: what is not as its kind has it by default."""
    return _describe_fields({k: v for k, v in asdict(setting).items() if v != getattr(type(setting)(), k)})


def describe_defaults(kind: str) -> str:
    """What settings of a grid are by default, in the same words."""
    return _describe_fields(asdict(type(GRIDS[kind][0])()))


def _describe_fields(fields: Mapping[str, float | str]) -> str:
    return ", ".join(f"{k.replace('_', ' ')} {v if isinstance(v, str) else f'{v:g}'}" for k, v in fields.items())


def settings_grid(kind: str, options: ReplicationOptions) -> dict[str, AgentSetting]:
    """The settings of a kind to choose from: the first and the last of them at the quick size."""
    settings = GRIDS[kind] if options.full else (GRIDS[kind][0], GRIDS[kind][-1])
    return {f"{kind}: {describe_setting(setting)}": setting for setting in settings}


def start_net(inputs: int, outputs: int, seed: int) -> nn.Module:
    """The document's net, started by a seed."""
    with isolated_rng(torch.device("cpu")):
        reseed((seed, "mushrooms"))
        return mlp(inputs, HIDDEN, outputs)
