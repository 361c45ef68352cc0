"""The mushroom agents of figures 23 to 27: those of the document, and a grid of each kind to choose from."""

from __future__ import annotations

import functools
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from doxa.contracts import Schedule
from doxa.judge import bandits
from doxa.kl_weights import tempered
from doxa.learners import point, variational
from doxa.likelihoods import gaussian
from doxa.nets import mlp
from doxa.posteriors import mean_field
from doxa.priors import scale_mixture
from doxa.randomness import isolated, reseed
from doxa.rates import step
from doxa.replicate.contract import Ask
from doxa.replicate.parts import kept

HIDDEN, NOISE = (100, 100), 1.0
START = mean_field(mean=(-0.2, 0.2), rho=(-5.0, -4.0))  # as the document starts its beliefs
NARROW = math.exp(-6)
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

    @property
    def halving(self) -> int:
        """Steps between two halvings of the learning rate: a tenth of all."""
        return max(1, self.steps // 10)


QUICK = Size(steps=100, updates=1, batch_size=32, memory=256, tuning=(100,))
FULL = Size(steps=50_000, updates=64, batch_size=64, memory=4096, tuning=(100, 101))


@dataclass(frozen=True)
class Bayes:
    """A belief about the weights, acted on by draws."""

    lr: float = 1e-4
    wide: float = 1.0
    narrow: float = NARROW
    reward_scale: float = 1.0
    kl_weight: float = 1.0
    draws: int = 2

    def agent(self, name: str, seed: int, size: Size) -> bandits.agent:
        prior = scale_mixture(0.5, self.wide, self.narrow)
        learner = variational(prior, samples=2, posterior=START, kl_weight=tempered(self.kl_weight))
        policy = bandits.thompson(self.draws)
        return bandits.agent(learner, policy, seed, rate(self.lr, size.halving), self.reward_scale, name)


@dataclass(frozen=True)
class Plain:
    """One net, acted on as if it were right but for a share ε of the steps."""

    lr: float = 1e-4
    reward_scale: float = 1.0
    epsilon: float = 0.0

    def agent(self, name: str, seed: int, size: Size) -> bandits.agent:
        policy = bandits.greedy(self.epsilon)
        return bandits.agent(point(), policy, seed, rate(self.lr, size.halving), self.reward_scale, name)


@dataclass(frozen=True)
class LastLayer:
    """One net whose last layer has an exact posterior."""

    lr: float = 1e-3
    reward_scale: float = 10.0
    scale: float = 1.0

    def agent(self, name: str, seed: int, size: Size) -> bandits.agent:
        policy = bandits.neural_linear(self.scale)
        return bandits.agent(point(), policy, seed, rate(self.lr, size.halving), self.reward_scale, name)


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
GRIDS: dict[str, tuple[Setting, ...]] = {
    "thompson": (
        Bayes(lr=1e-3),
        Bayes(lr=1e-3, reward_scale=10.0),
        Bayes(lr=1e-3, reward_scale=10.0, draws=1),
        Bayes(lr=1e-3, reward_scale=10.0, kl_weight=0.1),
        Bayes(lr=1e-3, reward_scale=10.0, kl_weight=0.1, draws=1),
        Bayes(lr=1e-3, reward_scale=10.0, kl_weight=0.01),
        Bayes(lr=3e-3, reward_scale=10.0, kl_weight=0.1),
        Bayes(lr=3e-4, reward_scale=10.0, kl_weight=0.1),
    ),
    "greedy": (
        Plain(lr=3e-4),
        Plain(lr=1e-3),
        Plain(lr=3e-3),
        Plain(lr=3e-4, reward_scale=10.0),
        Plain(lr=1e-3, reward_scale=10.0),
        Plain(lr=3e-3, reward_scale=10.0),
        Plain(lr=1e-3, reward_scale=10.0, epsilon=0.001),
        Plain(lr=1e-3, reward_scale=30.0),
    ),
    "neural-linear": (
        LastLayer(),
        LastLayer(lr=3e-4),
        LastLayer(scale=0.3),
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
    """Those that are reported."""
    return ask.these(2, 5)


def named(setting: Setting) -> str:
    """A setting of a grid in words: what is not as its kind has it by default."""
    own = {k: v for k, v in asdict(setting).items() if v != getattr(type(setting)(), k)}
    return ", ".join(f"{k.replace('_', ' ')} {v:g}" for k, v in own.items()) or "as written"


def grid(kind: str, ask: Ask) -> dict[str, Setting]:
    """The settings of a kind to choose from: two of them at the quick size."""
    some = GRIDS[kind] if ask.full else GRIDS[kind][:2]
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


def _mean(own: Mapping[str, Told], seeds: Sequence[int], curve: str = "expected") -> float:
    return sum(own[str(seed)][curve][-1] for seed in seeds) / len(seeds)


def _games(ask: Ask, kind: str, encoding: str, wanted: Sequence[tuple[str, Setting, int]]) -> Games:
    """Games as one program, kept when they are finished and resumed when they were not."""
    size = size_of(ask)
    settings = {
        "kind": kind,
        "encoding": encoding,
        "size": asdict(size),
        "agents": [[name, asdict(setting), seed] for name, setting, seed in wanted],
        "net": HIDDEN,
        "noise": NOISE,
    }
    name = f"mushrooms-{kind}-{encoding}"

    def make() -> dict[str, Any]:
        bandit = bandits.mushrooms(encoding)
        agents = [setting.agent(name, seed, size) for name, setting, seed in wanted]
        folder = None if ask.folder is None else ask.folder / f"{name}-{'full' if ask.full else 'quick'}"
        ask.say(f"{name}: {len(agents)} agents, {size.steps:,} steps of {size.updates} updates")
        outcomes = bandits.play(
            [net(bandit.inputs.shape[1], agent.seed) for agent in agents],
            bandit,
            agents,
            likelihood=gaussian(NOISE),
            steps=size.steps,
            updates=size.updates,
            batch_size=size.batch_size,
            memory=size.memory,
            device=ask.device,
            checkpoint=folder,
            checkpoint_every=size.halving // 2,
            resume=folder is not None,
            progress=ask.progress,
        )
        found: Games = {}
        for (own, _, seed), outcome in zip(wanted, outcomes, strict=True):
            found.setdefault(own, {})[str(seed)] = told(outcome, size)
        if folder is not None:
            shutil.rmtree(folder)
        return found

    return kept(ask, name, settings, make)


def net(inputs: int, seed: int) -> nn.Module:
    """The document's net, started by a seed."""
    with isolated(torch.device("cpu")):
        reseed((seed, "mushrooms"))
        return mlp(inputs, HIDDEN, 1)


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
        "noise_scale": NOISE,
        "halving_of_the_rate": size.halving,
        "start": "means uniform in (−0.2, 0.2), rho uniform in (−5, −4)",
        "prior_share": 0.5,
    }


LEFT_OPEN = (
    "steps of learning for each step of the game: 64 minibatches of 64, as Blundell et al. (2015) took, each drawn "
    "uniformly from the memory",
    "the noise of the reward: Gaussian of scale 1, or of reward_scale where rewards are divided by one",
    "the prior's share of the wide Gaussian: 1/2; samples a step of learning: 2; the KL is weighed 1/4096 an example",
    "which letters have no column: the first of each trait, which leaves the document's 95",
    "mushrooms come with replacement, each as likely as any other; the regret of the 4,096 random actions before the "
    "first step is not counted",
)
DEPARTURES: dict[str, tuple[str, ...]] = {
    "quick": (
        f"{QUICK.steps} steps of {QUICK.updates} update for 50,000 of 64, a memory of {QUICK.memory} for 4,096, two "
        "seeds, and two settings of each grid: a quick run shows that it works, not who wins",
    ),
    "full": (
        "five seeds for the document's one or three",
        "settings of a grid are chosen by the mean expected regret of seeds 100 and 101, which no figure reports",
    ),
}
TAKES = ("a few seconds", "six to ten minutes for each of five games on an H200, which the figures share")
