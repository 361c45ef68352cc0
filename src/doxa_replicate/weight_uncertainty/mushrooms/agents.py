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
from doxa.random.keys import isolated, reseed
from doxa.rates import step
from doxa_replicate.contract import Ask

HIDDEN = (100, 100)
# How the noise of scaled rewards is taken: of one size, or told by the net for each mushroom and action.
FIXED, TOLD = "fixed", "told"
NOISES: dict[str, tuple[Likelihood, int]] = {FIXED: (gaussian(1.0), 1), TOLD: (gaussian_per_input(least=0.1), 2)}
# Where beliefs start: at the document's uniform means, or at those of the net as torch starts it.
STARTS = {"uniform": mean_field(mean=(-0.2, 0.2), rho=(-5.0, -4.0)), "net": mean_field(rho=(-5.0, -4.0))}
NARROW, SHARE, SAMPLES = math.exp(-6), 0.5, 2  # of the prior, and draws a step of learning
HALVING = 5000


@dataclass(frozen=True)
class Size:
    """How long, and how hard."""

    steps: int
    updates: int
    batch_size: int
    memory: int
    tuning: tuple[int, ...]  # seeds that settings are chosen on, and that no figure reports

    def shortened(self, steps: int) -> int:
        """So many of the full game's steps, in proportion to this one's."""
        return max(1, steps * self.steps // 50_000)


QUICK = Size(steps=100, updates=2, batch_size=32, memory=256, tuning=(100,))
FULL = Size(steps=50_000, updates=16, batch_size=64, memory=4096, tuning=(100, 101))


@dataclass(frozen=True)
class Bayes:
    """A belief about the weights, acted on by draws."""

    lr: float = 1e-4
    halving: int = HALVING
    wide: float = 1.0
    reward_scale: float = 1.0
    draws: int = 2
    start: str = "uniform"
    noise: str = FIXED

    def agent(self, name: str, seed: int, size: Size) -> bandits.agent:
        learner = variational(scale_mixture(SHARE, self.wide, NARROW), samples=SAMPLES, posterior=STARTS[self.start])
        lr = rate(self.lr, size.shortened(self.halving))
        return bandits.agent(learner, bandits.thompson(self.draws), seed, lr, self.reward_scale, name)


@dataclass(frozen=True)
class Plain:
    """One net, acted on as if it were right but for a share ε of the steps."""

    lr: float = 1e-4
    halving: int = HALVING
    reward_scale: float = 1.0
    epsilon: float = 0.0
    noise: str = FIXED

    def agent(self, name: str, seed: int, size: Size) -> bandits.agent:
        lr = rate(self.lr, size.shortened(self.halving))
        return bandits.agent(point(), bandits.greedy(self.epsilon), seed, lr, self.reward_scale, name)


@dataclass(frozen=True)
class LastLayer:
    """One net whose last layer has an exact posterior."""

    lr: float = 1e-4
    halving: int = HALVING
    reward_scale: float = 10.0
    scale: float = 1.0
    every: int = 1  # steps of the game from one posterior to the next
    noise: str = FIXED

    def agent(self, name: str, seed: int, size: Size) -> bandits.agent:
        lr = rate(self.lr, size.shortened(self.halving))
        policy = bandits.neural_linear(self.scale, self.every)
        return bandits.agent(point(), policy, seed, lr, self.reward_scale, name)


Setting = Bayes | Plain | LastLayer


@functools.cache
def rate(lr: float, halving: int) -> Schedule:
    """The document's schedule: halved every so many steps."""
    return step(lr, every=halving)


BBB, GREEDY = "BBB", "greedy"
WIDES = (0.1, 0.3, 3.0)  # of figure 27 b, beside those of figures 23 and 26
THOMPSON_WRITTEN: dict[str, Setting] = {
    BBB: Bayes(),
    "BBB, σ₁ = 0.75": Bayes(wide=0.75),
    "BBB, lr 1e-5": Bayes(lr=1e-5),
    **{f"BBB, σ₁ = {wide:g}": Bayes(wide=wide) for wide in WIDES},
}
GREEDY_WRITTEN: dict[str, Setting] = {
    GREEDY: Plain(),
    "greedy, ε = 1 %": Plain(epsilon=0.01),
    "greedy, ε = 5 %": Plain(epsilon=0.05),
}
learned = functools.partial(Bayes, reward_scale=10.0, start="net")
GRIDS: dict[str, tuple[Setting, ...]] = {
    "thompson": (
        Bayes(halving=2000),
        Bayes(halving=1000),
        Bayes(halving=500),
        Bayes(halving=1000, draws=1),
        Bayes(halving=1000, draws=8),
        Bayes(halving=1000, wide=3.0),
        learned(lr=1e-4, halving=1000),
        learned(lr=3e-4, halving=50),
        learned(lr=1e-3, halving=25),
        learned(lr=1e-3, halving=50, noise=TOLD),
        learned(lr=1e-3, halving=100, noise=TOLD, draws=8),
        learned(lr=1e-3, halving=50, wide=0.3, noise=TOLD),
        learned(lr=1e-3, halving=100, wide=0.3, noise=TOLD),
        learned(lr=1e-3, halving=100, wide=0.3, noise=TOLD, draws=1),
        learned(lr=1e-3, halving=100, wide=0.3, noise=TOLD, draws=8),
        learned(lr=1e-3, halving=200, wide=0.3, noise=TOLD),
        learned(lr=1e-3, halving=200, wide=0.3, noise=TOLD, draws=8),
        learned(lr=3e-4, halving=200, wide=0.3, noise=TOLD, draws=8),
        learned(lr=1e-3, halving=100, wide=0.1, noise=TOLD, draws=8),
    ),
    "greedy": (
        Plain(lr=1e-4, halving=2000),
        Plain(lr=1e-4, halving=1000),
        Plain(lr=1e-4, halving=500),
        Plain(lr=1e-4, halving=200),
        Plain(lr=1e-4, halving=50),
        Plain(lr=3e-4, halving=50),
        Plain(lr=3e-4, halving=25),
        Plain(lr=1e-3, halving=12),
        Plain(lr=1e-3, halving=6),
        Plain(lr=1e-4, halving=50, reward_scale=10.0, noise=TOLD),
        Plain(lr=3e-4, halving=25, reward_scale=10.0, noise=TOLD),
        Plain(lr=1e-3, halving=6, reward_scale=10.0, noise=TOLD),
        Plain(lr=1e-3, halving=100, reward_scale=10.0, noise=TOLD),
        Plain(lr=1e-3, halving=200, reward_scale=10.0, noise=TOLD),
        Plain(lr=3e-4, halving=200, reward_scale=10.0, noise=TOLD),
    ),
    "neural-linear": (
        LastLayer(lr=1e-4, halving=2000, reward_scale=1.0, every=20),
        LastLayer(lr=1e-4, halving=1000, reward_scale=1.0, every=20),
        LastLayer(lr=1e-4, halving=1000),
        LastLayer(lr=1e-4, halving=50),
        LastLayer(lr=3e-4, halving=25),
        LastLayer(lr=1e-3, halving=6),
    ),
}
# Greedy agents that explore have schedules of their own: what they learn from is not what greedy ones do.
EXPLORING = {"greedy-1-percent": 0.01, "greedy-5-percent": 0.05}
SLOWER = ((1e-4, 3000), (1e-4, 2000), (1e-4, 1000), (3e-5, 5000), (3e-5, 3000), (1e-5, 10_000), (1e-5, 5000))
GRIDS |= {
    kind: tuple(Plain(lr=lr, halving=halving, epsilon=epsilon) for lr, halving in SLOWER)
    for kind, epsilon in EXPLORING.items()
}
WRITTEN = {"thompson": THOMPSON_WRITTEN, "greedy": GREEDY_WRITTEN}
CHOSEN = {
    "thompson": "Thompson, chosen",
    "greedy": "greedy, chosen",
    "neural-linear": "neural linear, chosen",
    **{kind: f"greedy, ε = {100 * epsilon:g} %, chosen" for kind, epsilon in EXPLORING.items()},
}


def size_of(ask: Ask) -> Size:
    found: Size = ask.of(QUICK, FULL)
    return found


def named(setting: Setting) -> str:
    """A setting of a grid in words: what is not as its kind has it by default."""
    return _words({k: v for k, v in asdict(setting).items() if v != getattr(type(setting)(), k)})


def usual(kind: str) -> str:
    """What settings of a grid are by default, in the same words."""
    return _words(asdict(type(GRIDS[kind][0])()))


def _words(own: Mapping[str, float | str]) -> str:
    return ", ".join(f"{k.replace('_', ' ')} {v if isinstance(v, str) else f'{v:g}'}" for k, v in own.items())


def grid(kind: str, ask: Ask) -> dict[str, Setting]:
    """The settings of a kind to choose from: the first and the last of them at the quick size."""
    some = GRIDS[kind] if ask.full else (GRIDS[kind][0], GRIDS[kind][-1])
    return {f"{kind}: {named(setting)}": setting for setting in some}


def net(inputs: int, outputs: int, seed: int) -> nn.Module:
    """The document's net, started by a seed."""
    with isolated(torch.device("cpu")):
        reseed((seed, "mushrooms"))
        return mlp(inputs, HIDDEN, outputs)
