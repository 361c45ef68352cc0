"""The games of the mushroom agents, which figures 23 to 27 share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from doxa import bandits
from doxa.errors import BadInput
from doxa.results import to_plain_json
from doxa.storage.describe import describe
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part, cached_settings, stem, work_sessions
from doxa_replicate.weight_uncertainty.mushrooms.agents import (
    BBB,
    BBB_AS_RUN,
    BBB_AS_WRITTEN,
    GREEDY_AGENTS,
    HIDDEN,
    LIKELIHOOD,
    AgentSetting,
    GameSize,
    ThompsonSetting,
    game_size,
    start_net,
    varied_settings,
)
from doxa_replicate.weight_uncertainty.mushrooms.game_records import GameRecord, game_record
from doxa_replicate.weight_uncertainty.mushrooms.grids import (
    AGENT_OF_KIND,
    PROGRAMS,
    Choice,
    settings_grid,
    tuning_seeds,
)

Games = dict[str, dict[str, GameRecord]]  # what agents did, by setting and seed
GamesByAgent = dict[str, list[GameRecord]]  # seed by seed
Request = tuple[str, AgentSetting, int]  # a game that is asked for: name, setting, seed
WRITTEN_AGENTS: dict[str, dict[str, AgentSetting]] = {"thompson": {BBB: BBB_AS_WRITTEN}, "greedy": {**GREEDY_AGENTS}}
RUN_AGENTS: dict[str, dict[str, AgentSetting]] = {"thompson": {BBB: BBB_AS_RUN}, "greedy": {**GREEDY_AGENTS}}


def reported_seeds(options: ReplicationOptions) -> list[int]:
    """Those of the main games: two at least, since agents are compared by pairs of the same seed."""
    seeds = options.seed_list(2, 10)
    if len(seeds) < 2:
        raise BadInput(f"agents are compared seed by seed, over two seeds or more; got {len(seeds)}: --seeds 2")
    return seeds


def varied_seeds(options: ReplicationOptions) -> list[int]:
    """Those of the games with other priors and rates: the first half of the reported ones, two at least."""
    seeds = reported_seeds(options)
    return seeds[: max(2, len(seeds) // 2)]


def main_games(options: ReplicationOptions) -> dict[str, GamesByAgent]:
    """What the agents of figures 23 to 25 did, column by column; of the chosen ones neural linear too."""
    size, seeds = game_size(options), reported_seeds(options)
    as_run: GamesByAgent = {}
    for program, settings in RUN_AGENTS.items():
        as_run |= _play(options, f"mushrooms-as-run-{program}", size.one_pass, settings, seeds)
    as_written: GamesByAgent = {}
    for program, settings in WRITTEN_AGENTS.items():
        games = _play_program_of(options, program)
        as_written |= {name: [games[name][str(seed)] for seed in seeds] for name in settings}
    chosen: GamesByAgent = {}
    for program, kinds in PROGRAMS.items():
        settings = {AGENT_OF_KIND[kind]: choose(options, kind).setting for kind in kinds}
        chosen |= _play(options, f"mushrooms-chosen-{program}", size, settings, seeds)
    return {AS_RUN: as_run, AS_WRITTEN: as_written, CHOSEN: chosen}


def varied_games(options: ReplicationOptions) -> dict[str, GamesByAgent]:
    """What agents with other priors and with a lower rate did, by fewer seeds, beside those of the main games."""
    size, seeds = game_size(options), varied_seeds(options)
    sizes = {AS_RUN: size.one_pass, AS_WRITTEN: size, CHOSEN: size}
    return {
        column: {name: main[name][: len(seeds)] for name in (*GREEDY_AGENTS, BBB)}
        | _play(
            options,
            f"mushrooms-{column.replace(' ', '-')}-varied",
            sizes[column],
            varied_settings(thompson_settings(options)[column]),
            seeds,
        )
        for column, main in main_games(options).items()
    }


def thompson_settings(options: ReplicationOptions) -> dict[str, ThompsonSetting]:
    """The setting of the main Thompson agent by column."""
    chosen = choose(options, "thompson").setting
    assert isinstance(chosen, ThompsonSetting)
    return {AS_RUN: BBB_AS_RUN, AS_WRITTEN: BBB_AS_WRITTEN, CHOSEN: chosen}


def choose(options: ReplicationOptions, kind: str) -> Choice:
    """The settings of a kind, tried on seeds of their own."""
    (program,) = (name for name, kinds in PROGRAMS.items() if kind in kinds)
    return Choice(kind, settings_grid(kind, options), _play_program_of(options, program), tuning_seeds(options))


def _play_program_of(options: ReplicationOptions, program: str) -> Games:
    """The grids of a program by the seeds for choosing, and beside them the agents as written."""
    requests = _requests(WRITTEN_AGENTS.get(program, {}), reported_seeds(options))
    for kind in PROGRAMS[program]:
        requests += _requests(settings_grid(kind, options), tuning_seeds(options))
    return _play_part(options, f"mushrooms-{program}", game_size(options), requests)


def _play(
    options: ReplicationOptions, part: str, size: GameSize, settings: Mapping[str, AgentSetting], seeds: Sequence[int]
) -> GamesByAgent:
    """Some agents' games by some seeds, as one program."""
    games = _play_part(options, part, size, _requests(settings, seeds))
    return {name: [games[name][str(seed)] for seed in seeds] for name in settings}


def _requests(settings: Mapping[str, AgentSetting], seeds: Iterable[int]) -> list[Request]:
    seeds = [*seeds]
    return [(name, setting, seed) for name, setting in settings.items() for seed in seeds]


def _play_part(
    options: ReplicationOptions,
    part: str,
    size: GameSize,
    requests: Sequence[Request],
) -> Games:
    """Games as one program, but for those that are kept from before: no agent's game hangs on another's.

    To rounding, that is, which over many thousand steps makes another game of it; so does another device.
    """
    missing_agents = {
        (name, str(seed)): to_plain_json(describe(setting.build_agent(name, seed, size)))
        for name, setting, seed in requests
    }
    games: Games = {}
    checkpoint_folder = _checkpoint_folder(options, part, _part_settings([*missing_agents.values()], size))
    for part_settings in (
        () if checkpoint_folder is not None and checkpoint_folder.exists() else cached_settings(options, part)
    ):
        finished_keys = [key for key, agent in missing_agents.items() if agent in part_settings["agents"]]
        if finished_keys and part_settings == to_plain_json(_part_settings(part_settings["agents"], size)):
            finished = _finished_games(options, part, part_settings, _refuse_to_make)
            for name, seed in finished_keys:
                games.setdefault(name, {})[seed] = finished[name][seed]
                del missing_agents[name, seed]
    missing = [game_request for game_request in requests if (game_request[0], str(game_request[2])) in missing_agents]
    new_games = _play_program(options, part, size, missing) if missing else {}
    for name, games_by_seed in new_games.items():
        games.setdefault(name, {}).update(games_by_seed)
    return games


def _refuse_to_make() -> dict[str, Any]:
    raise AssertionError("what is kept is not made again")


def _part_settings(agents: Sequence[Any], size: GameSize) -> dict[str, Any]:
    """What a game is found again by."""
    return {"size": asdict(size), "agents": agents, "net": HIDDEN, "likelihood": repr(LIKELIHOOD)}


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
    requests: Sequence[Request],
) -> Games:
    """Games as one program, kept when they are finished and resumed when they were not."""
    agents = [setting.build_agent(name, seed, size) for name, setting, seed in requests]
    # With all that a setting does not name: prior, start, samples.
    settings = _part_settings([describe(agent) for agent in agents], size)
    folder = _checkpoint_folder(options, part, settings)

    def make() -> dict[str, Any]:
        bandit = bandits.mushrooms()
        options.say(f"{part}: {len(agents)} agents, {size.steps:,} steps of {size.updates} updates")
        with work_sessions(folder) as sessions:
            outcomes = bandits.play(
                [start_net(bandit.inputs.shape[1], agent.seed) for agent in agents],
                bandit,
                agents,
                likelihood=LIKELIHOOD,
                steps=size.steps,
                updates=size.updates,
                batch_size=size.batch_size,
                memory=size.memory,
                replacement=size.replacement,
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
