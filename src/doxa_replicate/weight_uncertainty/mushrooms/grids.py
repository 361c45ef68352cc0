"""Settings to choose agents from, by kind, and which of them is best on seeds that no figure reports."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.mushrooms.agents import (
    BBB,
    EPSILONS,
    GREEDY,
    NEURAL_LINEAR,
    AgentSetting,
    GreedySetting,
    NeuralLinearSetting,
    ThompsonSetting,
)
from doxa_replicate.weight_uncertainty.mushrooms.game_records import GameRecord

Games = Mapping[str, Mapping[str, GameRecord]]  # what agents did, by setting and seed

EPSILON_BY_KIND = dict(zip(("greedy-1-percent", "greedy-5-percent"), EPSILONS.values(), strict=True))
AGENT_OF_KIND = {
    "thompson": BBB,
    "greedy": GREEDY,
    **dict(zip(EPSILON_BY_KIND, EPSILONS, strict=True)),
    "neural-linear": NEURAL_LINEAR,
}
PROGRAMS = {"thompson": ("thompson",), "greedy": ("greedy", *EPSILON_BY_KIND), "neural-linear": ("neural-linear",)}
GREEDY_SCHEDULES = [*itertools.product((3e-4, 1e-4, 3e-5), (2000, 1000, 500))]
# Greedy agents that explore have schedules of their own: what they learn from is not what greedy ones do.
EXPLORING_SCHEDULES = [*itertools.product((1e-4, 3e-5, 1e-5, 3e-6), (10_000, 5000, 2000))]
GRIDS: dict[str, tuple[AgentSetting, ...]] = {
    "thompson": (
        *(ThompsonSetting(halving=h, wide=w) for h, w in itertools.product((2000, 1000, 500), (1.0, 3.0, 10.0))),
        *(ThompsonSetting(halving=1000, wide=3.0, draws=draws) for draws in (1, 8)),
        *(ThompsonSetting(halving=h, wide=3.0, geometric=True) for h in (2000, 1000, 500)),
    ),
    "greedy": tuple(GreedySetting(*schedule) for schedule in GREEDY_SCHEDULES),
    **{
        kind: tuple(GreedySetting(*schedule, epsilon) for schedule in EXPLORING_SCHEDULES)
        for kind, epsilon in EPSILON_BY_KIND.items()
    },
    "neural-linear": tuple(NeuralLinearSetting(halving=halving) for halving in (2000, 1000, 500)),
}


def tuning_seeds(options: ReplicationOptions) -> tuple[int, ...]:
    """Seeds that settings are chosen on, and that no figure reports."""
    seeds: tuple[int, ...] = options.by_size((1000,), (1000, 1001))
    return seeds


def settings_grid(kind: str, options: ReplicationOptions) -> dict[str, AgentSetting]:
    """The settings of a kind to choose from: the first and the last of them at the quick size."""
    settings = GRIDS[kind] if options.full else (GRIDS[kind][0], GRIDS[kind][-1])
    return {f"{kind}: {describe_setting(setting)}": setting for setting in settings}


def describe_setting(setting: AgentSetting) -> str:
    """A setting of a grid in words: what is not as its kind has it by default."""
    return _describe_fields({k: v for k, v in asdict(setting).items() if v != getattr(type(setting)(), k)})


def describe_defaults(kind: str) -> str:
    """What settings of a grid are by default, in the same words."""
    return _describe_fields(asdict(type(GRIDS[kind][0])()))


def _describe_fields(fields: Mapping[str, Any]) -> str:
    words = {True: "yes", False: "no"}
    return ", ".join(
        f"{k.replace('_', ' ')} {words[v] if isinstance(v, bool) else f'{v:g}'}" for k, v in fields.items()
    )


@dataclass(frozen=True)
class Choice:
    """The settings of a kind, and their games by the seeds for choosing."""

    kind: str
    grid: Mapping[str, AgentSetting]
    games: Games
    seeds: Sequence[int]

    @property
    def best(self) -> str:
        """The setting with the least mean expected regret on the seeds for choosing; fewest diverged first.

        Of agents that explore, the least in the last half of the game, where their slope is measured.
        """
        return min(self.grid, key=lambda name: (len(self._diverged_seeds(name)), self._regret(name)))

    @property
    def setting(self) -> AgentSetting:
        return self.grid[self.best]

    @property
    def knobs_at_edge(self) -> list[str]:
        """The knobs of the chosen setting whose value is the least or the greatest of at least three tried."""
        best, at_edge = asdict(self.setting), []
        for knob, value in best.items():
            tried = {asdict(setting)[knob] for setting in self.grid.values()}
            if len(tried) > 2 and value in (min(tried), max(tried)):
                at_edge.append(knob)
        return at_edge

    @property
    def summary(self) -> dict[str, Any]:
        """Every setting of the grid with the regret that decides, and where it diverged."""
        rows = {
            name: {"setting": asdict(setting), "tuning": self._regret(name), "diverged": self._diverged_seeds(name)}
            for name, setting in self.grid.items()
        }
        return {"rows": rows, "chosen": self.best, "at_edge": self.knobs_at_edge, "tuning_seeds": list(self.seeds)}

    def _diverged_seeds(self, name: str) -> list[int]:
        """The seeds with which a setting diverged."""
        return [seed for seed in self.seeds if self.games[name][str(seed)].get("trouble")]

    def _regret(self, name: str) -> float:
        """The mean over seeds of the regret that decides: at the end, less that at half-time where agents explore."""
        curves = [self.games[name][str(seed)]["expected"] for seed in self.seeds]
        explores = self.kind in EPSILON_BY_KIND
        return float(sum(y[-1] - (y[(len(y) - 1) // 2] if explores else 0.0) for y in curves) / len(curves))
