"""The games of the mushroom agents, which figures 23 to 27 share, and what is told of each."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa import bandits
from doxa.errors import BadInput
from doxa.results import plain
from doxa.storage.describe import describe
from doxa_replicate.contract import Ask
from doxa_replicate.over_seeds import error
from doxa_replicate.parts import before, kept, legs, stem
from doxa_replicate.weight_uncertainty.mushrooms.agents import (
    CHOSEN,
    EXPLORING,
    FIXED,
    FULL,
    HIDDEN,
    NARROW,
    NOISES,
    QUICK,
    SAMPLES,
    SHARE,
    STARTS,
    WRITTEN,
    Setting,
    Size,
    grid,
    net,
    size_of,
)

POINTS, WINDOWS = 200, 50  # of a curve, and of an eating rate
POISON = 15.0  # the expected regret of a poisonous one eaten

# What an agent did in one game, and the same of a setting's seeds.
Told = dict[str, Any]
Games = dict[str, dict[str, Told]]


def seeds_of(ask: Ask) -> list[int]:
    """Those that are reported: two at least, since agents are compared by pairs of the same seed."""
    found = ask.these(2, 5)
    if len(found) < 2:
        raise BadInput(f"agents are compared seed by seed, over two seeds or more; got {len(found)}: --seeds 2")
    return found


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
        """The setting of the grid with the least mean expected regret on the seeds for choosing; fewest diverged first.

        Of agents that explore, the least in the last half of the game, where their slope is measured.
        """
        tuning = size_of(self.ask).tuning
        return min(self.grid, key=lambda name: (len(self._troubles(name, tuning)), self._regret(name, tuning)))

    def _troubles(self, name: str, seeds: Sequence[int]) -> list[int]:
        """The seeds with which a setting diverged."""
        return [seed for seed in seeds if self.games[name][str(seed)].get("trouble")]

    def _regret(self, name: str, seeds: Sequence[int], curve: str = "expected") -> float:
        """The mean over seeds of the regret that decides: at the end, less that at half-time where agents explore."""
        own = [self.games[name][str(seed)][curve] for seed in seeds]
        return sum(y[-1] - (y[(len(y) - 1) // 2] if self.kind in EXPLORING else 0.0) for y in own) / len(own)

    @property
    def reported(self) -> dict[str, list[Told]]:
        """The games of the reported seeds by setting, the chosen one among them under its own name."""
        names = {name: name for name in WRITTEN.get(self.kind, {})} | {CHOSEN[self.kind]: self.chosen}
        seeds = seeds_of(self.ask)
        return {shown: [self.games[name][str(seed)] for seed in seeds] for shown, name in names.items()}

    @property
    def choosing(self) -> dict[str, Any]:
        """Every setting of the grid: the regret that decides, on the seeds for choosing and on those reported."""
        tuning, seeds = size_of(self.ask).tuning, seeds_of(self.ask)
        rows = {
            name: {
                "setting": asdict(setting),
                "tuning": self._regret(name, tuning),
                "reported": self._regret(name, seeds),
                "reported_realised": self._regret(name, seeds, "regret"),
                "diverged": self._troubles(name, (*tuning, *seeds)),
            }
            for name, setting in self.grid.items()
        }
        return {"rows": rows, "chosen": self.chosen, "tuning_seeds": list(tuning)}


def played(ask: Ask, kind: str) -> Played:
    """All agents of a kind on the 95 columns of the document."""
    size, seeds = size_of(ask), seeds_of(ask)
    # Agents that explore play as one program, however often they do.
    program, kinds = ("exploring", tuple(EXPLORING)) if kind in EXPLORING else (kind, (kind,))
    settings = {name: setting for each in kinds for name, setting in grid(each, ask).items()}
    wanted = [(name, setting, seed) for name, setting in WRITTEN.get(kind, {}).items() for seed in seeds]
    wanted += [(name, setting, seed) for name, setting in settings.items() for seed in (*size.tuning, *seeds)]
    return Played(ask, kind, _games(ask, program, "drop_first", wanted))


def once(ask: Ask) -> dict[str, list[Told]]:
    """The document's Thompson agents with one step of learning for each of the game, by the reported seeds."""
    size, seeds = replace(size_of(ask), updates=1), seeds_of(ask)
    wanted = [(name, setting, seed) for name, setting in WRITTEN["thompson"].items() for seed in seeds]
    found = _part(ask, "mushrooms-thompson-once-drop_first", size, FIXED, "drop_first", wanted)
    return {name: [own[str(seed)] for seed in seeds] for name, own in found.items()}


def by_letters(found: Played) -> list[Told]:
    """The chosen agent of a kind with a column for every letter: 117 in place of 95."""
    name, seeds = CHOSEN[found.kind], seeds_of(found.ask)
    wanted = [(name, found.grid[found.chosen], seed) for seed in seeds]
    own = _games(found.ask, found.kind, "one_hot", wanted)[name]
    return [own[str(seed)] for seed in seeds]


def _games(ask: Ask, kind: str, encoding: str, wanted: Sequence[tuple[str, Setting, int]]) -> Games:
    """Games by setting and seed; those of one likelihood are one program."""
    found: Games = {}
    for noise in NOISES:
        own = [one for one in wanted if one[1].noise == noise]
        if own:
            found |= _part(ask, f"mushrooms-{kind}-{noise}-{encoding}", size_of(ask), noise, encoding, own)
    return found


def _part(
    ask: Ask, part: str, size: Size, noise: str, encoding: str, wanted: Sequence[tuple[str, Setting, int]]
) -> Games:
    """Games as one program, but for those that are kept from before: no agent's game hangs on another's.

    To rounding, that is, which over many thousand steps makes another game of it; so does another device.
    """
    asked = {(name, str(seed)): plain(describe(setting.agent(name, seed, size))) for name, setting, seed in wanted}
    found: Games = {}
    begun = _folder(ask, part, _settings([*asked.values()], size, noise))
    for told in () if begun is not None and begun.exists() else before(ask, part):
        here = [key for key, agent in asked.items() if agent in told["agents"]]
        if here and told == plain(_settings(told["agents"], size, noise)):
            games = _kept(ask, part, told, _never)
            for name, seed in here:
                found.setdefault(name, {})[seed] = games[name][seed]
                del asked[name, seed]
    missing = [one for one in wanted if (one[0], str(one[2])) in asked]
    new = _program(ask, part, size, noise, encoding, missing) if missing else {}
    for name, own in new.items():
        found.setdefault(name, {}).update(own)
    return found


def _never() -> dict[str, Any]:
    raise AssertionError("what is kept is not made again")


def _settings(agents: Sequence[Any], size: Size, noise: str) -> dict[str, Any]:
    """What a game is found again by."""
    return {"size": asdict(size), "agents": agents, "net": HIDDEN, "likelihood": repr(NOISES[noise][0])}


def _folder(ask: Ask, part: str, settings: Mapping[str, Any]) -> Path | None:
    """Of a game under way; by its settings, so that one broken off does not stand in the way of another."""
    return None if ask.folder is None else ask.folder / stem(part, settings)


def _kept(ask: Ask, part: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]) -> Games:
    """Games that are finished; what they were saved in on their way goes when they are on the disk."""
    games: Games = kept(ask, part, settings, make)["games"]
    folder = _folder(ask, part, settings)
    if folder is not None and folder.exists():
        shutil.rmtree(folder)
    return games


def _program(
    ask: Ask, part: str, size: Size, noise: str, encoding: str, wanted: Sequence[tuple[str, Setting, int]]
) -> Games:
    """Games as one program, kept when they are finished and resumed when they were not."""
    likelihood, outputs = NOISES[noise]
    agents = [setting.agent(name, seed, size) for name, setting, seed in wanted]
    # With all that a setting does not name: prior, start, samples.
    settings = _settings([describe(agent) for agent in agents], size, noise)
    folder = _folder(ask, part, settings)

    def make() -> dict[str, Any]:
        bandit = bandits.mushrooms(encoding)
        ask.say(f"{part}: {len(agents)} agents, {size.steps:,} steps of {size.updates} updates")
        with legs(folder) as spans:
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
        return {"games": found, "legs": spans()}

    return _kept(ask, part, settings, make)


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
    se = ((rows - mean).square().nansum(0) / (seen - 1) / seen).sqrt()  # no number where one seed has it
    return {"mean": _rounded(mean), "se": _rounded(se)}


def _rounded(values: Tensor) -> list[float | None]:
    return [None if not math.isfinite(v) else float(f"{v:.5g}") for v in values.tolist()]


def diverged(own: Sequence[Told]) -> int:
    """In how many games the agent diverged, and learned no more."""
    return sum(bool(game.get("trouble")) for game in own)


def finals(own: Sequence[Told], name: str = "regret") -> list[float]:
    """Where a curve ends, seed by seed."""
    return [float(game[name][-1]) for game in own]


def line_of(own: Sequence[Told], name: str, share: float) -> bandits.Line:
    """The line through the end of the mean curve."""
    rows = torch.tensor([game[name] for game in own], dtype=torch.float64).mean(0)
    return bandits.slope(rows, share, own[0]["steps"])


def slope_error(own: Sequence[Told], name: str, share: float) -> float | None:
    """The standard error of that line's slope over seeds: the mean of their own slopes is the slope of their mean."""
    return error([line_of([game], name, share).slope for game in own])


def interval(difference: Mapping[str, float]) -> str:
    """A difference by pairs in words."""
    return (
        f"{difference['mean']:,.0f} (95 % from {difference['low']:,.0f} to {difference['high']:,.0f}, "
        f"{100 * difference['won']:.0f} % of seeds won)".replace("-", "−")
    )


def doubt(difference: Mapping[str, float], of: str = "of the difference") -> str:
    """What a verdict says beside its setting where seeds differ more than agents do."""
    return f"; zero is within the 95 % interval {of}" if difference["low"] <= 0 <= difference["high"] else ""


def settings_of(ask: Ask) -> dict[str, Any]:
    """What a result says of how it was made."""
    size = size_of(ask)
    return {
        **asdict(size),
        "hidden": HIDDEN,
        "likelihoods": {name: repr(likelihood) for name, (likelihood, _) in NOISES.items()},
        "starts": {name: repr(start) for name, start in STARTS.items()},
        "prior": {"share": SHARE, "narrow": NARROW},
        "samples": SAMPLES,
        "as_written": {
            name: asdict(setting) | {"halving": size.shortened(setting.halving)}
            for own in WRITTEN.values()
            for name, setting in own.items()
        },
    }


LEFT_OPEN = (
    f"steps of learning for each step of the game: {FULL.updates} minibatches of {FULL.batch_size}, each drawn "
    "uniformly from the memory; Blundell et al. (2015) took 64 of 64",
    "the noise of the reward: Gaussian of scale 1, or of scale 10 where rewards are divided by 10 (“reward scale 10”); "
    "some settings of the grids let the net tell the noise of each mushroom and action (“noise told”)",
    "the prior's share of the wide Gaussian: 1/2; samples a step of learning: 2; the KL is weighed 1/4096 an example",
    "which letters have no column: the first of each trait, which leaves the document's 95",
    "mushrooms come with replacement, each as likely as any other; the regret of the 4,096 random actions before the "
    "first step is not counted",
    "games are played many at a time, and rounding differs with the company and the device: over 50,000 steps that "
    "makes another game of it: with ε-greedy agents that were played twice, in other company, mean expected regrets of "
    "the last half were up to 26 % apart",
)
DEPARTURES: dict[str, tuple[str, ...]] = {
    "quick": (
        f"{QUICK.steps} steps of {QUICK.updates} updates for 50,000 of {FULL.updates}, a memory of {QUICK.memory} for "
        "4,096, two seeds, and two settings of each grid: a quick run shows that it works, not who wins",
    ),
    "full": (
        "five seeds for the document's one or three",
        "settings of a grid are chosen by the mean expected regret of seeds 100 and 101, whose games are in no curve "
        "and no verdict; those of ε-greedy agents by their regret in the last half, where their slope is measured",
    ),
}
