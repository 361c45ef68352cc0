"""The games of the mushroom agents, which figures 23 to 27 share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from doxa import bandits
from doxa.errors import BadInput
from doxa.results import to_plain_json
from doxa.storage.describe import describe
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part, cached_settings, stem, work_sessions
from doxa_replicate.weight_uncertainty.mushrooms.agents import (
    CHOSEN_NAMES,
    EPSILON_BY_KIND,
    FIXED,
    FULL,
    HIDDEN,
    LEARNING_SAMPLES,
    NARROW_SCALE,
    NOISE_MODELS,
    QUICK,
    STARTS,
    WIDE_SHARE,
    WRITTEN_SETTINGS,
    AgentSetting,
    GameSize,
    game_size,
    settings_grid,
    start_net,
)
from doxa_replicate.weight_uncertainty.mushrooms.game_records import GameRecord, game_record

Games = dict[str, dict[str, GameRecord]]  # what agents did, by setting and seed


def reported_seeds(options: ReplicationOptions) -> list[int]:
    """Those that are reported: two at least, since agents are compared by pairs of the same seed."""
    seeds = options.seed_list(2, 5)
    if len(seeds) < 2:
        raise BadInput(f"agents are compared seed by seed, over two seeds or more; got {len(seeds)}: --seeds 2")
    return seeds


@dataclass(frozen=True)
class AgentGames:
    """The games of a kind of agent: the document's by the reported seeds, a grid's by those for choosing too."""

    options: ReplicationOptions
    kind: str
    games: Games

    @property
    def grid(self) -> dict[str, AgentSetting]:
        return settings_grid(self.kind, self.options)

    @property
    def chosen_setting(self) -> str:
        """The setting of the grid with the least mean expected regret on the seeds for choosing; fewest diverged first.

        Of agents that explore, the least in the last half of the game, where their slope is measured.
        """
        tuning = game_size(self.options).tuning
        return min(self.grid, key=lambda name: (len(self._diverged_seeds(name, tuning)), self._regret(name, tuning)))

    def _diverged_seeds(self, name: str, seeds: Sequence[int]) -> list[int]:
        """The seeds with which a setting diverged."""
        return [seed for seed in seeds if self.games[name][str(seed)].get("trouble")]

    def _regret(self, name: str, seeds: Sequence[int], curve: str = "expected") -> float:
        """The mean over seeds of the regret that decides: at the end, less that at half-time where agents explore."""
        curves = [self.games[name][str(seed)][curve] for seed in seeds]
        return sum(y[-1] - (y[(len(y) - 1) // 2] if self.kind in EPSILON_BY_KIND else 0.0) for y in curves) / len(
            curves
        )

    @property
    def reported(self) -> dict[str, list[GameRecord]]:
        """The games of the reported seeds by setting, the chosen one among them under its own name."""
        names = {name: name for name in WRITTEN_SETTINGS.get(self.kind, {})} | {
            CHOSEN_NAMES[self.kind]: self.chosen_setting
        }
        seeds = reported_seeds(self.options)
        return {shown_name: [self.games[name][str(seed)] for seed in seeds] for shown_name, name in names.items()}

    @property
    def grid_summary(self) -> dict[str, Any]:
        """Every setting of the grid: the regret that decides, on the seeds for choosing and on those reported."""
        tuning, seeds = game_size(self.options).tuning, reported_seeds(self.options)
        rows = {
            name: {
                "setting": asdict(setting),
                "tuning": self._regret(name, tuning),
                "reported": self._regret(name, seeds),
                "reported_realised": self._regret(name, seeds, "regret"),
                "diverged": self._diverged_seeds(name, (*tuning, *seeds)),
            }
            for name, setting in self.grid.items()
        }
        return {"rows": rows, "chosen": self.chosen_setting, "tuning_seeds": list(tuning)}


def play_agents(options: ReplicationOptions, kind: str) -> AgentGames:
    """All agents of a kind on the 95 columns of the document."""
    size, seeds = game_size(options), reported_seeds(options)
    # Agents that explore play as one program, however often they do.
    program, kinds = ("exploring", tuple(EPSILON_BY_KIND)) if kind in EPSILON_BY_KIND else (kind, (kind,))
    settings = {name: setting for grid_kind in kinds for name, setting in settings_grid(grid_kind, options).items()}
    requests = [(name, setting, seed) for name, setting in WRITTEN_SETTINGS.get(kind, {}).items() for seed in seeds]
    requests += [(name, setting, seed) for name, setting in settings.items() for seed in (*size.tuning, *seeds)]
    return AgentGames(options, kind, _play_by_noise(options, program, "drop_first", requests))


def play_with_one_update(options: ReplicationOptions) -> dict[str, list[GameRecord]]:
    """The document's Thompson agents with one step of learning for each of the game, by the reported seeds."""
    size, seeds = replace(game_size(options), updates=1), reported_seeds(options)
    requests = [(name, setting, seed) for name, setting in WRITTEN_SETTINGS["thompson"].items() for seed in seeds]
    games = _play_part(options, "mushrooms-thompson-once-drop_first", size, FIXED, "drop_first", requests)
    return {name: [games_by_seed[str(seed)] for seed in seeds] for name, games_by_seed in games.items()}


def play_with_all_columns(kind_games: AgentGames) -> list[GameRecord]:
    """The chosen agent of a kind with a column for every letter: 117 in place of 95."""
    name, seeds = CHOSEN_NAMES[kind_games.kind], reported_seeds(kind_games.options)
    requests = [(name, kind_games.grid[kind_games.chosen_setting], seed) for seed in seeds]
    games_by_seed = _play_by_noise(kind_games.options, kind_games.kind, "one_hot", requests)[name]
    return [games_by_seed[str(seed)] for seed in seeds]


def _play_by_noise(
    options: ReplicationOptions, kind: str, encoding: str, requests: Sequence[tuple[str, AgentSetting, int]]
) -> Games:
    """Games by setting and seed; those of one likelihood are one program."""
    games: Games = {}
    for noise in NOISE_MODELS:
        noise_requests = [game_request for game_request in requests if game_request[1].noise == noise]
        if noise_requests:
            games |= _play_part(
                options, f"mushrooms-{kind}-{noise}-{encoding}", game_size(options), noise, encoding, noise_requests
            )
    return games


def _play_part(
    options: ReplicationOptions,
    part: str,
    size: GameSize,
    noise: str,
    encoding: str,
    requests: Sequence[tuple[str, AgentSetting, int]],
) -> Games:
    """Games as one program, but for those that are kept from before: no agent's game hangs on another's.

    To rounding, that is, which over many thousand steps makes another game of it; so does another device.
    """
    missing_agents = {
        (name, str(seed)): to_plain_json(describe(setting.build_agent(name, seed, size)))
        for name, setting, seed in requests
    }
    games: Games = {}
    checkpoint_folder = _checkpoint_folder(options, part, _part_settings([*missing_agents.values()], size, noise))
    for part_settings in (
        () if checkpoint_folder is not None and checkpoint_folder.exists() else cached_settings(options, part)
    ):
        finished_keys = [key for key, agent in missing_agents.items() if agent in part_settings["agents"]]
        if finished_keys and part_settings == to_plain_json(_part_settings(part_settings["agents"], size, noise)):
            finished = _finished_games(options, part, part_settings, _refuse_to_make)
            for name, seed in finished_keys:
                games.setdefault(name, {})[seed] = finished[name][seed]
                del missing_agents[name, seed]
    missing = [game_request for game_request in requests if (game_request[0], str(game_request[2])) in missing_agents]
    new_games = _play_program(options, part, size, noise, encoding, missing) if missing else {}
    for name, games_by_seed in new_games.items():
        games.setdefault(name, {}).update(games_by_seed)
    return games


def _refuse_to_make() -> dict[str, Any]:
    raise AssertionError("what is kept is not made again")


def _part_settings(agents: Sequence[Any], size: GameSize, noise: str) -> dict[str, Any]:
    """What a game is found again by."""
    return {"size": asdict(size), "agents": agents, "net": HIDDEN, "likelihood": repr(NOISE_MODELS[noise][0])}


def _checkpoint_folder(options: ReplicationOptions, part: str, settings: Mapping[str, Any]) -> Path | None:
    """Of a game under way; by its settings, so that one broken off does not stand in the way of another."""
    return None if options.folder is None else options.folder / stem(part, settings)


def _finished_games(
    options: ReplicationOptions, part: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]
) -> Games:
    """Games that are finished; what they were saved in on their way goes when they are on the disk."""
    games: Games = cached_part(options, part, settings, make)["games"]
    folder = _checkpoint_folder(options, part, settings)
    if folder is not None and folder.exists():
        shutil.rmtree(folder)
    return games


def _play_program(
    options: ReplicationOptions,
    part: str,
    size: GameSize,
    noise: str,
    encoding: str,
    requests: Sequence[tuple[str, AgentSetting, int]],
) -> Games:
    """Games as one program, kept when they are finished and resumed when they were not."""
    likelihood, outputs = NOISE_MODELS[noise]
    agents = [setting.build_agent(name, seed, size) for name, setting, seed in requests]
    # With all that a setting does not name: prior, start, samples.
    settings = _part_settings([describe(agent) for agent in agents], size, noise)
    folder = _checkpoint_folder(options, part, settings)

    def make() -> dict[str, Any]:
        bandit = bandits.mushrooms(encoding)
        options.say(f"{part}: {len(agents)} agents, {size.steps:,} steps of {size.updates} updates")
        with work_sessions(folder) as sessions:
            outcomes = bandits.play(
                [start_net(bandit.inputs.shape[1], outputs, agent.seed) for agent in agents],
                bandit,
                agents,
                likelihood=likelihood,
                steps=size.steps,
                updates=size.updates,
                batch_size=size.batch_size,
                memory=size.memory,
                device=options.device,
                checkpoint=folder,
                checkpoint_every=size.scale_steps(2500),
                resume=folder is not None,
                progress=options.progress,
            )
        games: Games = {}
        for (name, _, seed), outcome in zip(requests, outcomes, strict=True):
            games.setdefault(name, {})[str(seed)] = game_record(outcome, size)
        return {"games": games, "legs": sessions()}

    return _finished_games(options, part, settings, make)


def result_settings(options: ReplicationOptions) -> dict[str, Any]:
    """What a result says of how it was made."""
    size = game_size(options)
    return {
        **asdict(size),
        "hidden": HIDDEN,
        "likelihoods": {name: repr(likelihood) for name, (likelihood, _) in NOISE_MODELS.items()},
        "starts": {name: repr(start) for name, start in STARTS.items()},
        "prior": {"share": WIDE_SHARE, "narrow": NARROW_SCALE},
        "samples": LEARNING_SAMPLES,
        "as_written": {
            name: asdict(setting) | {"halving": size.scale_steps(setting.halving)}
            for settings in WRITTEN_SETTINGS.values()
            for name, setting in settings.items()
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
