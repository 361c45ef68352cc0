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
from doxa_replicate import TABLE, Ask, perform, write
from doxa_replicate.show import Chart
from doxa_replicate.weight_uncertainty.mushrooms import agents, games, mistakes, rate_and_prior
from doxa_replicate.weight_uncertainty.mushrooms.agents import CHOSEN, FIXED, GRIDS, Bayes, Plain, Size
from doxa_replicate.weight_uncertainty.mushrooms.games import Played

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
    assert all(len({*map(agents.named, own)}) == len(own) for own in GRIDS.values())


def test_settings_are_chosen_on_seeds_that_are_not_reported() -> None:
    """The one that is best on the reported seeds is not taken."""
    ask = Ask()
    first, second = agents.grid("greedy", ask)
    tuning, seeds = [str(s) for s in agents.size_of(ask).tuning], [str(s) for s in games.seeds_of(ask)]
    assert not {*tuning} & {*seeds}
    found = {first: {s: game(10.0) for s in tuning} | {s: game(99.0) for s in seeds}}
    found[second] = {s: game(20.0) for s in tuning} | {s: game(1.0) for s in seeds}
    found |= {name: {s: game(50.0) for s in seeds} for name in agents.WRITTEN["greedy"]}
    one = Played(ask, "greedy", found)
    assert one.chosen == first
    assert games.finals(one.reported[CHOSEN["greedy"]]) == [99.0, 99.0]
    assert one.choosing["rows"][second]["reported"] == 1.0


def test_agents_that_explore_are_chosen_by_the_last_half() -> None:
    """There their slope is measured: one that learned late and then well is taken before one that never did."""
    ask = Ask()
    late, never = agents.grid("greedy-1-percent", ask)
    steps = range(1, 102)
    curves = {late: [min(9.0 * t, 450.0) + t for t in steps], never: [3.0 * t for t in steps]}
    tuning, seeds = agents.size_of(ask).tuning, games.seeds_of(ask)
    found = {
        name: {str(s): {"steps": [*steps], "regret": y, "expected": y} for s in (*tuning, *seeds)}
        for name, y in curves.items()
    }
    explored = Played(ask, "greedy-1-percent", found)
    assert explored.chosen == late
    assert [row["tuning"] for row in explored.choosing["rows"].values()] == [50.0, 150.0]
    plain = Played(ask, "greedy", {a: found[b] for a, b in zip(agents.grid("greedy", ask), found, strict=True)})
    assert plain.chosen == [*plain.grid][1], "at the end of the game late has lost more"


def test_a_setting_that_diverged_is_chosen_last_and_told() -> None:
    ask = Ask()
    first, second = agents.grid("greedy", ask)
    every = [str(s) for s in (*agents.size_of(ask).tuning, *games.seeds_of(ask))]
    found = {first: {s: game(1.0) | {"trouble": "NaN"} for s in every}, second: {s: game(9.0) for s in every}}
    one = Played(ask, "greedy", found)
    assert one.chosen == second
    assert [row["diverged"] for row in one.choosing["rows"].values()] == [[*map(int, every)], []]


@pytest.mark.parametrize(
    ("slow", "priors", "holds"), [(9.0, 2.0, True), (1.5, 2.0, False), (9.0, 1.1, False), (9.0, 0.0, None)]
)
def test_rate_and_prior_matter_only_where_both_do(slow: float, priors: float, holds: Any) -> None:
    """The slope with the lower rate in units of the other's, and the largest regret of a prior in units of the rest."""
    told = {name: [game(100.0), game(100.0)] for name in agents.THOMPSON_WRITTEN}
    told["BBB, lr 1e-5"] = [game(100.0 * slow)] * 2
    told["BBB, σ₁ = 3"] = [game(100.0 * priors)] * 2
    own = rate_and_prior.told_of(told)
    assert rate_and_prior.holds(own) is holds
    assert own["errors"]["slope, BBB"] == 0.0


def test_one_update_a_step_is_another_game(tmp_path: Path) -> None:
    ask = Ask(folder=tmp_path)
    games.once(ask)
    (path,) = tmp_path.glob("*.json")
    assert json.loads(path.read_text())["settings"]["size"]["updates"] == 1 < agents.size_of(ask).updates


def test_agents_are_the_document_s() -> None:
    agent: Any = Bayes().agent("BBB", 3, Size(50_000, 64, 64, 4096, ()))
    assert agent.policy.draws == agent.learner.samples == 2
    prior = agent.learner.prior
    assert (-math.log(prior.wide), -math.log(prior.narrow), prior.share) == pytest.approx((0, 6, 0.5))
    rates = [agent.lr(Moment(step, 50_000, 0, 1)) for step in (0, 4999, 5000, 49_999)]
    assert rates == [1e-4, 1e-4, 5e-5, 1e-4 * 0.5**9]
    assert Plain(epsilon=0.05).agent("", 0, agents.FULL).policy.epsilon == 0.05


def test_curves_have_their_mean_and_error() -> None:
    own = [{"y": [1.0, None]}, {"y": [3.0, None]}, {"y": [5.0, 7.0]}]
    found = games.curve_of(own, "y")
    assert found["mean"] == [3.0, 7.0]
    assert found["se"] == [pytest.approx(2 / 3**0.5, rel=1e-4), None], "one seed has no error"


def test_lines_have_their_slope_a_step() -> None:
    thin = {"steps": list(range(250, 50_001, 250))}
    thin["regret"] = [0.3 * t for t in thin["steps"]]
    line = games.line_of([thin], "regret", 0.5)
    assert line.slope == pytest.approx(0.3)
    assert line.r2 == pytest.approx(1.0)


def test_the_share_of_poison_in_the_gap() -> None:
    found = mistakes.share([game(100.0, 2.0)] * 2, [game(200.0, 6.0)] * 2)
    assert found == {"gap": 100.0, "by_poison": 60.0, "share": 0.6}


def test_games_are_told_thinly_and_add_up() -> None:
    size = Size(steps=60, updates=0, batch_size=4, memory=8, tuning=())
    agent = Plain(epsilon=1.0).agent("", 1, size)
    net, (likelihood, _) = agents.net(97, 1, 1), agents.NOISES[FIXED]
    (outcome,) = bandits.play(net, bandits.mushrooms(), [agent], likelihood=likelihood, steps=60, updates=0, memory=8)
    found = games.told(outcome, size)
    poison, passed = found["false_positives"], found["false_negatives"]
    torch.testing.assert_close(found["expected"], (15 * poison + 5 * passed).double())


def test_a_game_is_kept_by_all_that_makes_its_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prior's narrow scale is no setting of a grid, and still another game."""
    small = Size(steps=2, updates=1, batch_size=4, memory=8, tuning=())
    said: list[str] = []
    wanted = [("BBB", Bayes(), 0)]
    for narrow in (math.exp(-6), math.exp(-6), math.exp(-7)):
        monkeypatch.setattr(agents, "NARROW", narrow)
        ask = Ask(folder=tmp_path, say=said.append)
        games._part(ask, "part", small, FIXED, "drop_first", wanted)
    assert [words.partition(":")[2][:5] for words in said] == [" 1 ag", " kept", " 1 ag"]


def test_a_wider_grid_plays_its_new_agents_alone(tmp_path: Path) -> None:
    small = Size(steps=4, updates=1, batch_size=4, memory=8, tuning=())
    said: list[str] = []

    def played(*seeds: int, size: Size = small) -> tuple[Any, Ask]:
        ask = Ask(folder=tmp_path, say=said.append)
        return games._part(ask, "part", size, FIXED, "drop_first", [("greedy", Plain(), s) for s in seeds]), ask

    first, _ = played(0, 1)
    second, ask = played(1, 2, 0)
    assert [words.partition(":")[2][:9] for words in said] == [" 2 agents", " kept fro", " 1 agents"]
    assert {*second["greedy"]} == {"0", "1", "2"}
    assert second["greedy"]["1"] == first["greedy"]["1"]
    assert len(ask.used) == 2, "both programs are told of"
    played(0, size=Size(steps=5, updates=1, batch_size=4, memory=8, tuning=()))
    assert said[-1].startswith("part: 1 agents"), "a game of another length is another game"


def test_a_game_under_way_is_gone_on_with_and_no_checkpoint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where some of its agents have finished games of their own since."""
    small = Size(steps=2, updates=1, batch_size=4, memory=8, tuning=())
    said: list[str] = []

    def played(*seeds: int) -> Any:
        ask = Ask(folder=tmp_path, say=said.append)
        return games._part(ask, "part", small, FIXED, "drop_first", [("greedy", Plain(), s) for s in seeds])

    def broken(*told: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(games, "told", broken)
        with pytest.raises(KeyboardInterrupt):
            played(0, 1)
    (under_way,) = (path for path in tmp_path.iterdir() if path.is_dir())
    played(0)
    played(0, 1)
    assert [words.partition(":")[2][:9] for words in said] == [" 2 agents", " 1 agents", " 2 agents"]
    assert not under_way.exists()
    under_way.mkdir()  # as if it was killed between its result and this
    played(1, 0)
    assert not under_way.exists()


def test_a_game_broken_off_does_not_stand_in_the_way_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Size(steps=2, updates=1, batch_size=4, memory=8, tuning=())
    ask = Ask(folder=tmp_path)

    def broken(*told: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(games, "told", broken)
        with pytest.raises(KeyboardInterrupt):
            games._part(ask, "part", small, FIXED, "drop_first", [("greedy", Plain(), 0)])
    assert [p for p in tmp_path.iterdir() if p.is_dir()], "a checkpoint is left"
    found = games._part(ask, "part", small, FIXED, "drop_first", [("greedy", Plain(), s) for s in (0, 1)])
    assert {*found["greedy"]} == {"0", "1"}


def test_figures_share_their_games_and_are_shown(tmp_path: Path) -> None:
    """Five figures, nine games; what is shown is made of what was written."""
    said: list[str] = []
    for name in FIGURES:
        found = perform(TABLE[name], Ask(folder=tmp_path / "parts", say=said.append))
        path = write(tmp_path, found)
        assert path.stat().st_size < 200_000
        for shown in TABLE[name].show(json.loads(path.read_text(encoding="utf-8"))):
            assert shown.title
            if isinstance(shown, Chart):
                assert all(len(line.x) == len(line.y) for line in shown.lines)
    made = [words for words in said if "agents," in words]
    assert len(made) == len({*made}) == 9
    assert sorted(p.suffix for p in (tmp_path / "parts").iterdir()) == [".json"] * 9, "checkpoints are cleared away"
