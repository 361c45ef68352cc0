"""The mushroom agents of figures 23 to 27: those of the document, and a grid of each kind to choose from."""

from __future__ import annotations

import functools
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from doxa.checkpoint import describe
from doxa.contracts import Likelihood, Schedule
from doxa.errors import BadInput
from doxa.judge import bandits
from doxa.learners import point, variational
from doxa.likelihoods import gaussian, gaussian_per_input
from doxa.nets import mlp
from doxa.posteriors import mean_field
from doxa.priors import scale_mixture
from doxa.randomness import isolated, reseed
from doxa.rates import step
from doxa.replicate.contract import Ask
from doxa.replicate.parts import kept, stem

HIDDEN = (100, 100)
# How the noise of scaled rewards is taken: of one size, or told by the net for each mushroom and action.
FIXED, TOLD = "fixed", "told"
NOISES: dict[str, tuple[Likelihood, int]] = {FIXED: (gaussian(1.0), 1), TOLD: (gaussian_per_input(least=0.1), 2)}
# Where beliefs start: at the document's uniform means, or at those of the net as torch starts it.
STARTS = {"uniform": mean_field(mean=(-0.2, 0.2), rho=(-5.0, -4.0)), "net": mean_field(rho=(-5.0, -4.0))}
NARROW, HALVING = math.exp(-6), 5000
POINTS, WINDOWS = 200, 50  # of a curve, and of an eating rate

EDIBLE, POISON = 5.0, 15.0  # the expected regret of an edible one passed, and of a poisonous one eaten


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


QUICK = Size(steps=100, updates=1, batch_size=32, memory=256, tuning=(100,))
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
        learner = variational(scale_mixture(0.5, self.wide, NARROW), samples=2, posterior=STARTS[self.start])
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
    noise: str = FIXED

    def agent(self, name: str, seed: int, size: Size) -> bandits.agent:
        lr = rate(self.lr, size.shortened(self.halving))
        return bandits.agent(point(), bandits.neural_linear(self.scale), seed, lr, self.reward_scale, name)


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
        Bayes(halving=1000),
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
        LastLayer(lr=1e-4, halving=1000),
        LastLayer(lr=1e-4, halving=50),
        LastLayer(lr=3e-4, halving=25),
        LastLayer(lr=1e-3, halving=6),
    ),
}
WRITTEN = {"thompson": THOMPSON_WRITTEN, "greedy": GREEDY_WRITTEN, "neural-linear": {}}
CHOSEN = {"thompson": "Thompson, chosen", "greedy": "greedy, chosen", "neural-linear": "neural linear, chosen"}

# What an agent did in one game, and the same of a setting's seeds.
Told = dict[str, Any]
Games = dict[str, dict[str, Told]]


def size_of(ask: Ask) -> Size:
    found: Size = ask.of(QUICK, FULL)
    return found


def seeds_of(ask: Ask) -> list[int]:
    """Those that are reported: two at least, since agents are compared by pairs of the same seed."""
    found = ask.these(2, 5)
    if len(found) < 2:
        raise BadInput(f"agents are compared seed by seed, over two seeds or more; got {len(found)}: --seeds 2")
    return found


def named(setting: Setting) -> str:
    """A setting of a grid in words: what is not as its kind has it by default."""
    own = {k: v for k, v in asdict(setting).items() if v != getattr(type(setting)(), k)}
    return ", ".join(f"{k.replace('_', ' ')} {v if isinstance(v, str) else f'{v:g}'}" for k, v in own.items())


def grid(kind: str, ask: Ask) -> dict[str, Setting]:
    """The settings of a kind to choose from: the first and the last of them at the quick size."""
    some = GRIDS[kind] if ask.full else (GRIDS[kind][0], GRIDS[kind][-1])
    return {f"{kind}: {named(setting)}": setting for setting in some}


@dataclass(frozen=True)
class Played:
    """The games of a kind of agent: the document's by the reported seeds, a grid's by those for choosing too."""

    ask: Ask
    kind: str
    games: Games

    @property
    def grid(self) -> dict[str, Setting]:
        return grid(self.kind, self.ask)

    @property
    def chosen(self) -> str:
        """The setting of the grid with the least mean expected regret on the seeds for choosing."""
        return min(self.grid, key=lambda name: _mean(self.games[name], size_of(self.ask).tuning))

    @property
    def reported(self) -> dict[str, list[Told]]:
        """The games of the reported seeds by setting, the chosen one among them under its own name."""
        names = {name: name for name in WRITTEN[self.kind]} | {CHOSEN[self.kind]: self.chosen}
        seeds = seeds_of(self.ask)
        return {shown: [self.games[name][str(seed)] for seed in seeds] for shown, name in names.items()}

    @property
    def choosing(self) -> dict[str, Any]:
        """Every setting of the grid: its mean regret on the seeds for choosing and on those reported."""
        tuning, seeds = size_of(self.ask).tuning, seeds_of(self.ask)
        rows = {
            name: {
                "setting": asdict(setting),
                "tuning": _mean(self.games[name], tuning),
                "reported": _mean(self.games[name], seeds),
                "reported_realised": _mean(self.games[name], seeds, "regret"),
            }
            for name, setting in self.grid.items()
        }
        return {"rows": rows, "chosen": self.chosen, "tuning_seeds": list(tuning)}


def played(ask: Ask, kind: str) -> Played:
    """All agents of a kind on the 95 columns of the document."""
    size, seeds = size_of(ask), seeds_of(ask)
    wanted = [(name, setting, seed) for name, setting in WRITTEN[kind].items() for seed in seeds]
    wanted += [(name, setting, seed) for name, setting in grid(kind, ask).items() for seed in (*size.tuning, *seeds)]
    return Played(ask, kind, _games(ask, kind, "drop_first", wanted))


def by_letters(found: Played) -> list[Told]:
    """The chosen agent of a kind with a column for every letter: 117 in place of 95."""
    name, seeds = CHOSEN[found.kind], seeds_of(found.ask)
    wanted = [(name, found.grid[found.chosen], seed) for seed in seeds]
    own = _games(found.ask, found.kind, "one_hot", wanted)[name]
    return [own[str(seed)] for seed in seeds]


def exploring(found: Played, name: str, epsilon: float) -> list[Told]:
    """The chosen greedy agent, but for a share ε of its steps."""
    setting, seeds = found.grid[found.chosen], seeds_of(found.ask)
    assert isinstance(setting, Plain)
    wanted = [(name, replace(setting, epsilon=epsilon), seed) for seed in seeds]
    own = _games(found.ask, f"{found.kind}-{100 * epsilon:g}-percent", "drop_first", wanted)[name]
    return [own[str(seed)] for seed in seeds]


def _mean(own: Mapping[str, Told], seeds: Sequence[int], curve: str = "expected") -> float:
    return sum(own[str(seed)][curve][-1] for seed in seeds) / len(seeds)


def _games(ask: Ask, kind: str, encoding: str, wanted: Sequence[tuple[str, Setting, int]]) -> Games:
    """Games by setting and seed; those of one likelihood are one program."""
    found: Games = {}
    for noise in NOISES:
        own = [one for one in wanted if one[1].noise == noise]
        if own:
            found |= _part(ask, f"mushrooms-{kind}-{noise}-{encoding}", noise, encoding, own)
    return found


def _part(ask: Ask, part: str, noise: str, encoding: str, wanted: Sequence[tuple[str, Setting, int]]) -> Games:
    """Games as one program, kept when they are finished and resumed when they were not."""
    size, (likelihood, outputs) = size_of(ask), NOISES[noise]
    agents = [setting.agent(name, seed, size) for name, setting, seed in wanted]
    settings = {
        "size": asdict(size),
        "agents": [describe(agent) for agent in agents],  # with all that a setting does not name: prior, start, samples
        "net": HIDDEN,
        "likelihood": repr(likelihood),
    }

    def make() -> dict[str, Any]:
        bandit = bandits.mushrooms(encoding)
        # By its settings: a game that was broken off does not stand in the way of another.
        folder = None if ask.folder is None else ask.folder / stem(part, settings)
        ask.say(f"{part}: {len(agents)} agents, {size.steps:,} steps of {size.updates} updates")
        outcomes = bandits.play(
            [net(bandit.inputs.shape[1], outputs, agent.seed) for agent in agents],
            bandit,
            agents,
            likelihood=likelihood,
            steps=size.steps,
            updates=size.updates,
            batch_size=size.batch_size,
            memory=size.memory,
            device=ask.device,
            checkpoint=folder,
            checkpoint_every=size.shortened(2500),
            resume=folder is not None,
            progress=ask.progress,
        )
        found: Games = {}
        for (name, _, seed), outcome in zip(wanted, outcomes, strict=True):
            found.setdefault(name, {})[str(seed)] = told(outcome, size)
        if folder is not None:
            shutil.rmtree(folder)
        return found

    return kept(ask, part, settings, make)


def net(inputs: int, outputs: int, seed: int) -> nn.Module:
    """The document's net, started by a seed."""
    with isolated(torch.device("cpu")):
        reseed((seed, "mushrooms"))
        return mlp(inputs, HIDDEN, outputs)


def told(outcome: bandits.Outcome, size: Size) -> Told:
    """The curves of a game, thin enough to keep."""
    shares = outcome.rates("eat", max(1, size.steps // WINDOWS))
    curves: dict[str, Tensor] = {
        "regret": outcome.regret,
        "expected": outcome.expected_regret,
        "false_positives": outcome.false_positives("eat"),
        "false_negatives": outcome.false_negatives("eat"),
    }
    at, _ = bandits.thinned(outcome.regret, POINTS)
    found: Told = {name: bandits.thinned(curve, POINTS)[1] for name, curve in curves.items()}
    rates = {f"eats_{name}": torch.round(share, decimals=4) for name, share in shares.items()}
    return {"steps": at, **found, **rates, "trouble": outcome.trouble}


def curve_of(own: Sequence[Told], name: str) -> dict[str, list[float | None]]:
    """Mean and standard error of a curve over seeds, point by point; None where no seed has it."""
    rows = torch.tensor([[math.nan if v is None else v for v in game[name]] for game in own], dtype=torch.float64)
    seen = rows.isfinite().sum(0)
    mean = rows.nanmean(0)
    se = ((rows - mean).square().nansum(0) / (seen - 1).clamp_min(1) / seen.clamp_min(1)).sqrt()
    return {"mean": _rounded(mean), "se": _rounded(se)}


def _rounded(values: Tensor) -> list[float | None]:
    return [None if not math.isfinite(v) else float(f"{v:.5g}") for v in values.tolist()]


def finals(own: Sequence[Told], name: str = "regret") -> list[float]:
    """Where a curve ends, seed by seed."""
    return [float(game[name][-1]) for game in own]


def line_of(own: Sequence[Told], name: str, share: float) -> bandits.Line:
    """The line through the end of the mean curve, its slope a step."""
    rows = torch.tensor([game[name] for game in own], dtype=torch.float64).mean(0)
    steps = own[0]["steps"]
    found = bandits.slope(rows, share)
    return bandits.Line(found.slope * (len(steps) - 1) / (steps[-1] - steps[0]), found.r2)


def settings_of(ask: Ask) -> dict[str, Any]:
    """What a result says of how it was made."""
    size = size_of(ask)
    return {
        **asdict(size),
        "hidden": HIDDEN,
        "likelihoods": {name: repr(likelihood) for name, (likelihood, _) in NOISES.items()},
        "halving_of_the_rate": size.shortened(HALVING),
        "starts": {name: repr(start) for name, start in STARTS.items()},
        "prior_share": 0.5,
    }


LEFT_OPEN = (
    f"steps of learning for each step of the game: {FULL.updates} minibatches of {FULL.batch_size}, each drawn "
    "uniformly from the memory; Blundell et al. (2015) took 64 of 64",
    "the noise of the reward: Gaussian of scale 1, or of reward_scale where rewards are divided by one; some settings "
    "of the grids let the net tell the noise of each mushroom and action",
    "the prior's share of the wide Gaussian: 1/2; samples a step of learning: 2; the KL is weighed 1/4096 an example",
    "which letters have no column: the first of each trait, which leaves the document's 95",
    "mushrooms come with replacement, each as likely as any other; the regret of the 4,096 random actions before the "
    "first step is not counted",
)
DEPARTURES: dict[str, tuple[str, ...]] = {
    "quick": (
        f"{QUICK.steps} steps of {QUICK.updates} update for 50,000 of {FULL.updates}, a memory of {QUICK.memory} for "
        "4,096, two seeds, and two settings of each grid: a quick run shows that it works, not who wins",
    ),
    "full": (
        "five seeds for the document's one or three",
        "settings of a grid are chosen by the mean expected regret of seeds 100 and 101, whose games are in no curve "
        "and no verdict",
        "a game that was broken off is told with the time of its last leg",
    ),
}
TAKES = ("a few seconds", "a time not yet measured as a whole, on a GPU: nine games, which the figures share")
