"""The mushroom figures: who is chosen, and how curves are told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from doxa import bandits
from doxa.contracts import Moment
from doxa_replicate import TABLE, ReplicationOptions, perform, write
from doxa_replicate.show import Chart
from doxa_replicate.weight_uncertainty.mushrooms import agents, game_records, games, mistakes, rate_and_prior
from doxa_replicate.weight_uncertainty.mushrooms.agents import (
    CHOSEN_NAMES,
    FIXED,
    GRIDS,
    GameSize,
    GreedySetting,
    ThompsonSetting,
)
from doxa_replicate.weight_uncertainty.mushrooms.games import AgentGames

FIGURES = [f"weight-uncertainty/figure-{n}" for n in (23, 24, 25, 26, 27)]


def game(regret: float, poison: float = 0.0) -> dict[str, Any]:
    steps = list(range(1, 101))
    return {
        "steps": steps,
        "regret": [regret * t / 100 for t in steps],
        "expected": [regret * t / 100 for t in steps],
        "false_positives": [poison * t / 100 for t in steps],
    }


def test_the_grids_have_settings_enough_and_no_two_alike() -> None:
    assert all(len(set(GRIDS[kind])) == len(GRIDS[kind]) >= 6 for kind in ("thompson", "greedy"))
    assert all(len({*map(agents.describe_setting, settings)}) == len(settings) for settings in GRIDS.values())


def test_settings_are_chosen_on_seeds_that_are_not_reported() -> None:
    """The one that is best on the reported seeds is not taken."""
    options = ReplicationOptions()
    first, second = agents.settings_grid("greedy", options)
    tuning, seeds = [str(s) for s in agents.game_size(options).tuning], [str(s) for s in games.reported_seeds(options)]
    assert not {*tuning} & {*seeds}
    games_by_setting = {first: {s: game(10.0) for s in tuning} | {s: game(99.0) for s in seeds}}
    games_by_setting[second] = {s: game(20.0) for s in tuning} | {s: game(1.0) for s in seeds}
    games_by_setting |= {name: {s: game(50.0) for s in seeds} for name in agents.WRITTEN_SETTINGS["greedy"]}
    agent_games = AgentGames(options, "greedy", games_by_setting)
    assert agent_games.chosen_setting == first
    assert game_records.final_values(agent_games.reported[CHOSEN_NAMES["greedy"]]) == [99.0, 99.0]
    assert agent_games.grid_summary["rows"][second]["reported"] == 1.0


def test_agents_that_explore_are_chosen_by_the_last_half() -> None:
    """There their slope is measured: one that learned late and then well is taken before one that never did."""
    options = ReplicationOptions()
    late, never = agents.settings_grid("greedy-1-percent", options)
    steps = range(1, 102)
    curves = {late: [min(9.0 * t, 450.0) + t for t in steps], never: [3.0 * t for t in steps]}
    tuning, seeds = agents.game_size(options).tuning, games.reported_seeds(options)
    games_by_setting = {
        name: {str(s): {"steps": [*steps], "regret": y, "expected": y} for s in (*tuning, *seeds)}
        for name, y in curves.items()
    }
    exploring = AgentGames(options, "greedy-1-percent", games_by_setting)
    assert exploring.chosen_setting == late
    assert [row["tuning"] for row in exploring.grid_summary["rows"].values()] == [50.0, 150.0]
    greedy = AgentGames(
        options,
        "greedy",
        {
            a: games_by_setting[b]
            for a, b in zip(agents.settings_grid("greedy", options), games_by_setting, strict=True)
        },
    )
    assert greedy.chosen_setting == [*greedy.grid][1], "at the end of the game late has lost more"


def test_a_setting_that_diverged_is_chosen_last_and_told() -> None:
    options = ReplicationOptions()
    first, second = agents.settings_grid("greedy", options)
    all_seeds = [str(s) for s in (*agents.game_size(options).tuning, *games.reported_seeds(options))]
    games_by_setting = {
        first: {s: game(1.0) | {"trouble": "NaN"} for s in all_seeds},
        second: {s: game(9.0) for s in all_seeds},
    }
    agent_games = AgentGames(options, "greedy", games_by_setting)
    assert agent_games.chosen_setting == second
    assert [row["diverged"] for row in agent_games.grid_summary["rows"].values()] == [[*map(int, all_seeds)], []]


@pytest.mark.parametrize(
    ("slow", "priors", "holds"), [(9.0, 2.0, True), (1.5, 2.0, False), (9.0, 1.1, False), (9.0, 0.0, None)]
)
def test_rate_and_prior_matter_only_where_both_do(slow: float, priors: float, holds: Any) -> None:
    """The slope with the lower rate in units of the other's, and the largest regret of a prior in units of the rest."""
    games_by_agent = {name: [game(100.0), game(100.0)] for name in agents.THOMPSON_WRITTEN}
    games_by_agent["BBB, lr 1e-5"] = [game(100.0 * slow)] * 2
    games_by_agent["BBB, σ₁ = 3"] = [game(100.0 * priors)] * 2
    summary = rate_and_prior.summarise_agents(games_by_agent)
    assert rate_and_prior.claim_holds(summary) is holds
    assert summary["errors"]["slope, BBB"] == 0.0


def test_one_update_a_step_is_another_game(tmp_path: Path) -> None:
    options = ReplicationOptions(folder=tmp_path)
    games.play_with_one_update(options)
    (path,) = tmp_path.glob("*.json")
    assert json.loads(path.read_text())["settings"]["size"]["updates"] == 1 < agents.game_size(options).updates


def test_agents_are_the_document_s() -> None:
    agent: Any = ThompsonSetting().build_agent("BBB", 3, GameSize(50_000, 64, 64, 4096, ()))
    assert agent.policy.draws == agent.learner.samples == 2
    prior = agent.learner.prior
    assert (-math.log(prior.wide), -math.log(prior.narrow), prior.share) == pytest.approx((0, 6, 0.5))
    rates = [agent.lr(Moment(step, 50_000, 0, 1)) for step in (0, 4999, 5000, 49_999)]
    assert rates == [1e-4, 1e-4, 5e-5, 1e-4 * 0.5**9]
    assert GreedySetting(epsilon=0.05).build_agent("", 0, agents.FULL).policy.epsilon == 0.05


def test_curves_have_their_mean_and_error() -> None:
    records = [{"y": [1.0, None]}, {"y": [3.0, None]}, {"y": [5.0, 7.0]}]
    curve = game_records.mean_curve(records, "y")
    assert curve["mean"] == [3.0, 7.0]
    assert curve["se"] == [pytest.approx(2 / 3**0.5, rel=1e-4), None], "one seed has no error"


def test_lines_have_their_slope_a_step() -> None:
    record = {"steps": list(range(250, 50_001, 250))}
    record["regret"] = [0.3 * t for t in record["steps"]]
    line = game_records.fit_end_line([record], "regret", 0.5)
    assert line.slope == pytest.approx(0.3)
    assert line.r2 == pytest.approx(1.0)


def test_the_share_of_poison_in_the_gap() -> None:
    poison = mistakes.poison_share([game(100.0, 2.0)] * 2, [game(200.0, 6.0)] * 2)
    assert poison == {"gap": 100.0, "by_poison": 60.0, "share": 0.6}


def test_games_are_told_thinly_and_add_up() -> None:
    size = GameSize(steps=60, updates=0, batch_size=4, memory=8, tuning=())
    agent = GreedySetting(epsilon=1.0).build_agent("", 1, size)
    net, (likelihood, _) = agents.start_net(97, 1, 1), agents.NOISE_MODELS[FIXED]
    (outcome,) = bandits.play(net, bandits.mushrooms(), [agent], likelihood=likelihood, steps=60, updates=0, memory=8)
    record = game_records.game_record(outcome, size)
    poison, missed = record["false_positives"], record["false_negatives"]
    torch.testing.assert_close(record["expected"], (15 * poison + 5 * missed).double())


def test_a_game_is_kept_by_all_that_makes_its_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prior's narrow scale is no setting of a grid, and still another game."""
    small = GameSize(steps=2, updates=1, batch_size=4, memory=8, tuning=())
    messages: list[str] = []
    requests = [("BBB", ThompsonSetting(), 0)]
    for narrow in (math.exp(-6), math.exp(-6), math.exp(-7)):
        monkeypatch.setattr(agents, "NARROW_SCALE", narrow)
        options = ReplicationOptions(folder=tmp_path, say=messages.append)
        games._play_part(options, "part", small, FIXED, "drop_first", requests)
    assert [message.partition(":")[2][:5] for message in messages] == [" 1 ag", " kept", " 1 ag"]


def test_a_wider_grid_plays_its_new_agents_alone(tmp_path: Path) -> None:
    small = GameSize(steps=4, updates=1, batch_size=4, memory=8, tuning=())
    messages: list[str] = []

    def play_seeds(*seeds: int, size: GameSize = small) -> tuple[Any, ReplicationOptions]:
        options = ReplicationOptions(folder=tmp_path, say=messages.append)
        return games._play_part(
            options, "part", size, FIXED, "drop_first", [("greedy", GreedySetting(), s) for s in seeds]
        ), options

    first, _ = play_seeds(0, 1)
    second, options = play_seeds(1, 2, 0)
    assert [message.partition(":")[2][:9] for message in messages] == [" 2 agents", " kept fro", " 1 agents"]
    assert {*second["greedy"]} == {"0", "1", "2"}
    assert second["greedy"]["1"] == first["greedy"]["1"]
    assert len(options.used_parts) == 2, "both programs are told of"
    play_seeds(0, size=GameSize(steps=5, updates=1, batch_size=4, memory=8, tuning=()))
    assert messages[-1].startswith("part: 1 agents"), "a game of another length is another game"


def test_a_game_under_way_is_gone_on_with_and_no_checkpoint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where some of its agents have finished games of their own since."""
    small = GameSize(steps=2, updates=1, batch_size=4, memory=8, tuning=())
    messages: list[str] = []

    def play_seeds(*seeds: int) -> Any:
        options = ReplicationOptions(folder=tmp_path, say=messages.append)
        return games._play_part(
            options, "part", small, FIXED, "drop_first", [("greedy", GreedySetting(), s) for s in seeds]
        )

    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(games, "game_record", interrupt)
        with pytest.raises(KeyboardInterrupt):
            play_seeds(0, 1)
    (under_way,) = (path for path in tmp_path.iterdir() if path.is_dir())
    play_seeds(0)
    play_seeds(0, 1)
    assert [message.partition(":")[2][:9] for message in messages] == [" 2 agents", " 1 agents", " 2 agents"]
    assert not under_way.exists()
    under_way.mkdir()  # as if it was killed between its result and this
    play_seeds(1, 0)
    assert not under_way.exists()


def test_a_game_broken_off_does_not_stand_in_the_way_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = GameSize(steps=2, updates=1, batch_size=4, memory=8, tuning=())
    options = ReplicationOptions(folder=tmp_path)

    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(games, "game_record", interrupt)
        with pytest.raises(KeyboardInterrupt):
            games._play_part(options, "part", small, FIXED, "drop_first", [("greedy", GreedySetting(), 0)])
    assert [p for p in tmp_path.iterdir() if p.is_dir()], "a checkpoint is left"
    records = games._play_part(
        options, "part", small, FIXED, "drop_first", [("greedy", GreedySetting(), s) for s in (0, 1)]
    )
    assert {*records["greedy"]} == {"0", "1"}


def test_figures_share_their_games_and_are_shown(tmp_path: Path) -> None:
    """Five figures, nine games; what is shown is made of what was written."""
    messages: list[str] = []
    for name in FIGURES:
        result = perform(TABLE[name], ReplicationOptions(folder=tmp_path / "parts", say=messages.append))
        path = write(tmp_path, result)
        assert path.stat().st_size < 200_000
        for element in TABLE[name].show(json.loads(path.read_text(encoding="utf-8"))):
            assert element.title
            if isinstance(element, Chart):
                assert all(len(line.x) == len(line.y) for line in element.lines)
    played_messages = [message for message in messages if "agents," in message]
    assert len(played_messages) == len({*played_messages}) == 9
    assert sorted(p.suffix for p in (tmp_path / "parts").iterdir()) == [".json"] * 9, "checkpoints are cleared away"
