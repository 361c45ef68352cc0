"""The mushroom figures: who plays, who is chosen, what decides the claims, and how curves are told."""

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
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.show import Chart
from doxa_replicate.weight_uncertainty.mushrooms import (
    agents,
    game_records,
    games,
    grids,
    mistakes,
    rate_and_prior,
    regret,
    single_games,
)
from doxa_replicate.weight_uncertainty.mushrooms.agents import BBB, GREEDY, GameSize, GreedySetting, ThompsonSetting
from doxa_replicate.weight_uncertainty.mushrooms.grids import GRIDS, Choice

FIGURES = [f"weight-uncertainty/figure-{n}" for n in (23, 24, 25, 26, 27)]
SMALL = GameSize(steps=2, updates=1, batch_size=4, memory=8, replacement=True)


def game(regret: float, poison: float = 0.0) -> dict[str, Any]:
    steps = list(range(1, 101))
    return {
        "steps": steps,
        "regret": [regret * t / 100 for t in steps],
        "expected": [regret * t / 100 for t in steps],
        "false_positives": [poison * t / 100 for t in steps],
    }


def choice(kind: str, **curves: list[float]) -> Choice:
    """What is chosen of made-up settings by their curves of expected regret, the same for both seeds."""
    record = {name: {str(s): {"expected": curve} for s in (7, 8)} for name, curve in curves.items()}
    return Choice(kind, {name: GreedySetting(halving=i) for i, name in enumerate(curves, 1)}, record, (7, 8))


def test_the_grids_have_settings_enough_and_no_two_alike() -> None:
    assert all(len(set(GRIDS[kind])) == len(GRIDS[kind]) >= 6 for kind in ("thompson", "greedy"))
    assert all(len({*map(grids.describe_setting, settings)}) == len(settings) for settings in GRIDS.values())
    assert {kind for kinds in grids.PROGRAMS.values() for kind in kinds} == {*GRIDS} == {*grids.AGENT_OF_KIND}


def test_agents_of_one_program_learn_and_act_alike() -> None:
    """Else they would play one kind after the other, and an interrupted game would be many."""
    for kinds in grids.PROGRAMS.values():
        settings = [setting for kind in kinds for setting in GRIDS[kind]]
        assert len({setting.build_agent("", 0, agents.QUICK).kind for setting in settings}) == 1


def test_settings_are_chosen_on_seeds_that_are_not_reported() -> None:
    for options in (ReplicationOptions(), ReplicationOptions(full=True, seeds=100)):
        assert not {*grids.tuning_seeds(options)} & {*games.reported_seeds(options)}
    assert {*games.varied_seeds(options)} < {*games.reported_seeds(options)}
    assert len(games.reported_seeds(ReplicationOptions(full=True))) >= 10
    assert len(games.varied_seeds(ReplicationOptions(full=True))) >= 5


def test_the_least_regret_is_chosen() -> None:
    assert choice("greedy", a=[1.0, 30.0], b=[5.0, 20.0], c=[9.0, 40.0]).best == "b"
    assert choice("greedy", a=[1.0, 30.0], b=[5.0, 20.0], c=[9.0, 40.0]).knobs_at_edge == []
    assert choice("greedy", a=[1.0, 3.0], b=[5.0, 20.0], c=[9.0, 40.0]).knobs_at_edge == ["halving"]


def test_agents_that_explore_are_chosen_by_the_last_half() -> None:
    """There their slope is measured: one that learned late and then well is taken before one that never did."""
    steps = range(1, 102)
    curves = {"late": [min(9.0 * t, 450.0) + t for t in steps], "never": [3.0 * t for t in steps]}
    exploring = choice("greedy-1-percent", **curves)
    assert exploring.best == "late"
    assert [row["tuning"] for row in exploring.summary["rows"].values()] == [50.0, 150.0]
    assert choice("greedy", **curves).best == "never", "at the end of the game late has lost more"


def test_a_setting_that_diverged_is_chosen_last_and_told() -> None:
    tried = choice("greedy", first=[1.0], second=[9.0])
    for record in tried.games["first"].values():
        record["trouble"] = "NaN"
    assert tried.best == "second"
    assert [row["diverged"] for row in tried.summary["rows"].values()] == [[7, 8], []]


def verdicts(verdict: dict[str, Any]) -> dict[str, str]:
    return {name: part["verdict"] for name, part in verdict["parts"].items()}


NOISE = (-2.0, 0.0, 1.0, 1.0)  # of four seeds


@pytest.mark.parametrize(
    ("slow", "priors", "expected"),
    [(9.0, 2.0, ["PASS", "PASS"]), (1.5, 2.0, ["FAIL", "PASS"]), (9.0, 1.1, ["PASS", "FAIL"])],
)
def test_rate_and_prior_matter_only_where_both_do(slow: float, priors: float, expected: list[str]) -> None:
    """The growth with the lower rate in units of the other's, and the most regret of a prior in units of the rest."""
    names = agents.scale_names(ThompsonSetting())
    ends = dict.fromkeys(names.values(), 100.0) | {agents.SLOW_AGENT: 100.0 * slow, "BBB, σ₁ = 3": 100.0 * priors}
    made = {name: [game(end + noise) for noise in NOISE] for name, end in ends.items()}
    verdict = rate_and_prior.judge(made, {f"{w:g}": n for w, n in names.items()}, [0, 1, 2, 3], AS_RUN)
    assert [*verdicts(verdict).values()] == expected


def test_priors_that_differ_by_chance_alone_do_not_matter() -> None:
    """The worst and the best of many are far apart in the very games that they were picked by."""
    rng = torch.Generator().manual_seed(0)
    ends = {str(k): (100 + 40 * torch.randn(5, generator=rng)).tolist() for k in range(20)}
    means = {name: sum(values) / 5 for name, values in ends.items()}
    assert max(means.values()) > 1.2 * min(means.values())
    assert sum(rate_and_prior._worst_less_best(ends, k) for k in range(5)) < 0


@pytest.mark.parametrize(
    ("gap", "poison", "expected"),
    [(300.0, 15.0, ["PASS", "PASS"]), (300.0, 5.0, ["PASS", "FAIL"]), (-300.0, 15.0, ["FAIL", "PASS"])],
)
def test_poison_explains_the_gap_where_there_is_one(gap: float, poison: float, expected: list[str]) -> None:
    made = {BBB: [game(1000.0 + n, 40.0) for n in NOISE], GREEDY: [game(1000.0 + gap, 40.0 + poison) for _ in NOISE]}
    assert [*verdicts(mistakes.judge(made, [0, 1, 2, 3], AS_RUN)).values()] == expected


@pytest.mark.parametrize(
    ("one", "five", "expected"),
    [((1.0, 1.0), (1.0, 1.0), "PASS"), ((1.4, 1.4), (1.0, 1.0), "FAIL"), ((0.85, 1.15), (1.0, 1.0), "FAIL")],
)
def test_regret_is_linear_where_it_grows_by_random_acts_alone(one: Any, five: Any, expected: str) -> None:
    """Regret of both last quarters in units of what ε costs: too steep, or bent, it is not."""
    made = {name: [game(100.0 + n) for n in NOISE] for name in (BBB, GREEDY)}
    for (name, epsilon), (third, fourth) in zip(agents.EPSILONS.items(), (one, five), strict=True):
        act = 100 * epsilon
        curve = [*(0.0 for _ in range(50)), *(third * act * t for t in range(1, 26))]
        curve += [curve[-1] + fourth * act * t for t in range(1, 26)]
        made[name] = [
            {
                "steps": [100 * t for t in range(1, 101)],
                "expected": [y + n * act * i / 100 for i, y in enumerate(curve)],
            }
            for n in (-0.1, 0.0, 0.1)
        ]
    _, linear = regret.judge(made, 1.0, [0, 1, 2, 3], AS_RUN)
    assert linear["verdict"] == expected


def test_agents_are_the_document_s() -> None:
    agent: Any = ThompsonSetting().build_agent("BBB", 3, agents.FULL)
    assert agent.policy.draws == agent.learner.samples == 2
    prior = agent.learner.prior
    assert (-math.log(prior.wide), -math.log(prior.narrow), prior.share) == pytest.approx((0, 6, 0.5))
    rates = [agent.lr(Moment(step, 50_000, 0, 1)) for step in (0, 4999, 5000, 49_999)]
    assert rates == [1e-4, 1e-4, 5e-5, 1e-4 * 0.5**9]
    assert GreedySetting(epsilon=0.05).build_agent("", 0, agents.FULL).policy.epsilon == 0.05


def test_agents_as_run_are_their_authors() -> None:
    """64 minibatches of 64 are one pass over 4,096 things; their shares of the KL are 2^(64−i) / (2^64 − 1)."""
    size = agents.FULL.one_pass
    assert (size.steps, size.updates, size.batch_size, size.memory, size.replacement) == (50_000, 64, 64, 4096, False)
    agent: Any = agents.BBB_AS_RUN.build_agent("BBB", 0, size)
    assert (agent.policy.draws, agent.policy.per_action, agent.reward_scale) == (2, True, 1.0)
    weights = [agent.learner.kl_weight(Moment(64 + i, 64 * 50_000, i, 64)) for i in range(64)]
    assert [w / 64 for w in weights] == pytest.approx([2 ** (63 - i) / (2**64 - 1) for i in range(64)])
    assert games.RUN_AGENTS["greedy"] == games.WRITTEN_AGENTS["greedy"]


def test_other_priors_stand_beside_the_agent_s_own() -> None:
    for wide in (1.0, 3.0, 10.0):
        setting = ThompsonSetting(wide=wide, per_action=True)
        names, varied = agents.scale_names(setting), agents.varied_settings(setting)
        assert names[wide] == BBB
        assert {*names.values()} - {BBB} == {*varied} - {agents.SLOW_AGENT}
        assert all(varied[name].wide == scale for scale, name in names.items() if name != BBB)  # type: ignore[union-attr]
        assert all(each.per_action for each in varied.values())  # type: ignore[union-attr]
        assert {*single_games.SHOWN_SCALES} <= {*names}


def test_curves_have_their_mean_and_error() -> None:
    records = [{"y": [1.0, None]}, {"y": [3.0, None]}, {"y": [5.0, 7.0]}]
    curve = game_records.mean_curve(records, "y")
    assert curve["mean"] == [3.0, 7.0]
    assert curve["se"] == [pytest.approx(2 / 3**0.5, rel=1e-4), None], "one seed has no error"


def test_growth_is_from_one_share_of_the_game_to_another() -> None:
    record = {"y": [float(t * t) for t in range(1, 201)]}
    assert game_records.growth([record], "y", 0.5, 0.75) == [150.0**2 - 100.0**2]
    assert game_records.growth([record, record], "y", 0.9) == [200.0**2 - 180.0**2] * 2


def test_games_are_told_thinly_and_add_up() -> None:
    size = GameSize(steps=60, updates=0, batch_size=4, memory=8, replacement=True)
    agent = GreedySetting(epsilon=1.0).build_agent("", 1, size)
    net, mushrooms = agents.start_net(97, 1), bandits.mushrooms()
    (outcome,) = bandits.play(net, mushrooms, [agent], likelihood=agents.LIKELIHOOD, steps=60, updates=0, memory=8)
    record = game_records.game_record(outcome, size)
    poison, missed = record["false_positives"], record["false_negatives"]
    torch.testing.assert_close(record["expected"], (15 * poison + 5 * missed).double())


def test_a_game_is_kept_by_all_that_makes_its_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prior's narrow scale is no setting of a grid, and still another game."""
    messages: list[str] = []
    requests = [("BBB", ThompsonSetting(), 0)]
    for narrow in (math.exp(-6), math.exp(-6), math.exp(-7)):
        monkeypatch.setattr(agents, "NARROW_SCALE", narrow)
        options = ReplicationOptions(folder=tmp_path, say=messages.append)
        games._play_part(options, "part", SMALL, requests)
    assert [message.partition(":")[2][:5] for message in messages] == [" 1 ag", " kept", " 1 ag"]


def test_a_wider_grid_plays_its_new_agents_alone(tmp_path: Path) -> None:
    messages: list[str] = []

    def play_seeds(*seeds: int, size: GameSize = SMALL) -> tuple[Any, ReplicationOptions]:
        options = ReplicationOptions(folder=tmp_path, say=messages.append)
        return games._play_part(options, "part", size, [("greedy", GreedySetting(), s) for s in seeds]), options

    first, _ = play_seeds(0, 1)
    second, options = play_seeds(1, 2, 0)
    assert [message.partition(":")[2][:9] for message in messages] == [" 2 agents", " kept fro", " 1 agents"]
    assert {*second["greedy"]} == {"0", "1", "2"}
    assert second["greedy"]["1"] == first["greedy"]["1"]
    assert len(options.used_parts) == 2, "both programs are told of"
    play_seeds(0, size=GameSize(steps=5, updates=1, batch_size=4, memory=8, replacement=True))
    assert messages[-1].startswith("part: 1 agents"), "a game of another length is another game"


def test_a_game_under_way_is_gone_on_with_and_no_checkpoint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where some of its agents have finished games of their own since."""
    messages: list[str] = []

    def play_seeds(*seeds: int) -> Any:
        options = ReplicationOptions(folder=tmp_path, say=messages.append)
        return games._play_part(options, "part", SMALL, [("greedy", GreedySetting(), s) for s in seeds])

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
    options = ReplicationOptions(folder=tmp_path)

    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(games, "game_record", interrupt)
        with pytest.raises(KeyboardInterrupt):
            games._play_part(options, "part", SMALL, [("greedy", GreedySetting(), 0)])
    assert [p for p in tmp_path.iterdir() if p.is_dir()], "a checkpoint is left"
    records = games._play_part(options, "part", SMALL, [("greedy", GreedySetting(), s) for s in (0, 1)])
    assert {*records["greedy"]} == {"0", "1"}


def test_figures_share_their_games_and_are_shown(tmp_path: Path) -> None:
    """Five figures, eleven games; what is shown is made of what was written, and every column is judged."""
    messages: list[str] = []
    for name in FIGURES:
        result = perform(TABLE[name], ReplicationOptions(folder=tmp_path / "parts", say=messages.append))
        path = write(tmp_path, result)
        assert path.stat().st_size < 200_000
        for claim in TABLE[name].claims:
            judged = [verdict["column"] for verdict in result["verdicts"] if verdict["claim"] == claim.name]
            assert judged == [AS_RUN, AS_WRITTEN, CHOSEN]
        for element in TABLE[name].show(json.loads(path.read_text(encoding="utf-8"))):
            assert element.title
            if isinstance(element, Chart):
                assert all(len(line.x) == len(line.y) for line in element.lines)
    played_messages = [message for message in messages if "agents," in message]
    assert len(played_messages) == len({*played_messages}) == 11
    assert sorted(p.suffix for p in (tmp_path / "parts").iterdir()) == [".json"] * 11, "checkpoints are cleared away"
