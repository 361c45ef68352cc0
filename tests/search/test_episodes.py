"""Policies by the returns of whole episodes: they improve, repeat and resume to the bit, and say what is wrong."""

from __future__ import annotations

import builtins
import json
import math
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor, nn

import doxa
from doxa.search import engines, load_policy, policy
from doxa.search.episodes import ObservationNormalizer, clip, tanh
from doxa.search.episodes.environments import EnvironmentSpec
from doxa.search.episodes.observation_normalizer import ObservationStatistics, empty_normalizer
from doxa.search.episodes.policy_network import PolicyBatch, PolicyNetwork
from doxa.search.episodes.policy_search import PolicySearch
from doxa.search.episodes.rollout import rollout
from doxa.storage.sealed import read, write
from for_episodes import Broken, Cell, Deadly, Layers, Reach, Recall


class Pairs(Reach):
    action_space = spaces.MultiDiscrete([2, 2])


def small(outputs: int = 2, inputs: int = 4) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs))


def reached(**more: Any) -> doxa.search.Policy:
    keys: dict[str, Any] = {"longest": 5, "generations": 6, "size": 10, "episodes": 1, "progress": False, **more}
    return policy(Reach, small(1, 2), **keys)


def test_a_pole_is_balanced_longer_and_longer() -> None:
    result = policy("CartPole-v1", small(), seed=3, generations=8, longest=150, progress=False)
    rows = result.trajectory
    assert rows[0]["return"] < 60 < 90 < rows[-1]["return"]
    assert {"generation", "return", "highest", "middle", "scale", "gradient", "scale_gradient", "steps"} <= {*rows[-1]}
    assert float(result.play(20, seed=1, which="mean").mean()) > 100
    assert result.env_spec.threshold == 475
    assert not result.solved


def test_a_target_that_is_reached_in_a_trial_ends_the_search() -> None:
    result = reached(generations=100, size=30, target=-12.0)
    assert result.solved
    assert result.trajectory[-1]["trial"] > -12
    assert 5 <= len(result.trajectory) < 100
    assert not torch.equal(result.best.flat, result.mean.flat)  # which has gone on by a step
    assert float(result.play(200).mean()) > -14


def test_continuous_actions_are_learned() -> None:
    result = reached(generations=40, size=30, episodes=3, lr=1.0)
    assert result.trajectory[-1]["middle"] > 0.2 * result.trajectory[0]["return"]
    assert float(result.play(50).mean()) > -5
    assert not result.solved


def test_same_seed_same_bits_and_another_seed_another_search() -> None:
    first, again, other_seed = (reached(seed=s) for s in (1, 1, 2))
    assert torch.equal(first.mean.flat, again.mean.flat)
    assert first.trajectory == again.trajectory
    assert not torch.equal(first.mean.flat, other_seed.mean.flat)


@pytest.fixture
def one_thread() -> Any:
    """As many as a worker has: results depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("common", "workers"), [(True, (1, 2)), (False, (2,))])
def test_episodes_in_several_processes_are_those_of_one(common: bool, workers: Any, one_thread: Any) -> None:
    keys: dict[str, Any] = {"common": common, "episodes": 2, "size": 12, "target": -1e6}
    in_process = reached(engine=engines.in_process(parts=16), **keys)
    assert "trial" in in_process.trajectory[4]  # which passes, and is held by who leads alone
    for count in workers:
        pooled = reached(engine=engines.pool(count), **keys)
        assert torch.equal(pooled.mean.flat, in_process.mean.flat)
        assert torch.equal(pooled.best.flat, in_process.best.flat)
        assert pooled.trajectory == in_process.trajectory
        assert pooled.solved == in_process.solved
        assert pooled.mean.normalizer is not None
        assert in_process.mean.normalizer is not None
        assert torch.equal(pooled.mean.normalizer.squares, in_process.mean.normalizer.squares)


def test_environments_that_step_many_at_once_do_so_in_workers_too(one_thread: Any) -> None:
    keys: dict[str, Any] = {"common": False, "generations": 3, "size": 8, "target": None, "progress": False}
    in_process, pooled = (
        policy("CartPole-v1", small(), engine=engine, **keys) for engine in (engines.in_process(16), engines.pool(2))
    )
    assert torch.equal(in_process.mean.flat, pooled.mean.flat)
    assert in_process.trajectory == pooled.trajectory


@pytest.mark.parametrize("lost", ["reissue", "drop"])
def test_a_worker_that_dies_in_an_episode_is_replaced(lost: str, tmp_path: Path, one_thread: Any) -> None:
    mark = tmp_path / "driver"
    mark.write_text(str(os.getpid()))
    keys: dict[str, Any] = {"longest": 5, "generations": 3, "size": 8, "episodes": 1, "progress": False}
    result = policy(partial(Deadly, mark), small(1, 2), engine=engines.pool(1, lost=lost), **keys)
    undisturbed = policy(Reach, small(1, 2), engine=engines.in_process(16), **keys)
    assert mark.with_suffix(".dead").exists()
    assert len(result.trajectory) == 3
    assert torch.equal(result.mean.flat, undisturbed.mean.flat) is (lost == "reissue")
    assert ("middle" in result.trajectory[0]) is (lost == "reissue")  # the mean played with the first block


@pytest.mark.parametrize("normalise", [True, False])
def test_a_search_goes_on_from_its_folder_to_the_same_bits(normalise: bool, tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "normalise": normalise,
        "optimiser": torch.optim.Adam,
        "lr": 0.1,
        "scale_lr": 0.05,
        "decay": 0.01,
        "episodes": 2,
    }
    uninterrupted = reached(generations=12, **more)
    reached(generations=7, checkpoint=tmp_path, **more)
    resumed = reached(generations=12, checkpoint=tmp_path, resume=True, **more)
    for expected, actual in ((uninterrupted.mean, resumed.mean), (uninterrupted.best, resumed.best)):
        assert torch.equal(expected.flat, actual.flat)
        assert (expected.normalizer is None) is not normalise
        if expected.normalizer is not None and actual.normalizer is not None:
            assert expected.normalizer.count == actual.normalizer.count
            assert torch.equal(expected.normalizer.squares, actual.normalizer.squares)
    assert uninterrupted.trajectory == resumed.trajectory
    assert torch.equal(uninterrupted.scale, resumed.scale)
    with pytest.raises(doxa.BadInput, match="already holds a run"):
        reached(checkpoint=tmp_path, **more)
    with pytest.raises(doxa.BadInput, match="seed: 0 there, 1 here"):
        reached(checkpoint=tmp_path, resume=True, seed=1, **more)


def test_ctrl_c_saves_and_the_same_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uninterrupted, original = reached(), PolicySearch.run_generation

    def interrupted(self: PolicySearch, exchange: Any) -> None:
        original(self, exchange)
        if self.search.generation == 3:
            import signal

            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(PolicySearch, "run_generation", interrupted)
    with pytest.raises(doxa.Interrupted, match="after generation 3 of 6; saved in") as stopped:
        reached(checkpoint=tmp_path)
    assert len(stopped.value.belief.trajectory) == 3
    with pytest.raises(doxa.Interrupted, match="nothing was saved"):
        reached()
    monkeypatch.undo()
    assert torch.equal(reached(checkpoint=tmp_path, resume=True).mean.flat, uninterrupted.mean.flat)


def test_a_file_of_another_search_or_net_is_refused(tmp_path: Path) -> None:
    doxa.search.minimise(lambda w: w.square().sum(), [1.0], generations=2, checkpoint=tmp_path / "function")
    with pytest.raises(doxa.BrokenFile, match=r"holds a doxa\.search, not a doxa\.policy_search: choose another"):
        reached(checkpoint=tmp_path / "function", resume=True)
    reached(checkpoint=tmp_path / "policy")
    with pytest.raises(doxa.BadInput, match="written for another net"):
        policy(Reach, nn.Linear(2, 1), longest=5, checkpoint=tmp_path / "policy", resume=True, progress=False)


def test_normalisation_is_the_plain_statistics_of_all_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    observed: list[Any] = []
    original = ObservationStatistics.update

    def update(self: ObservationStatistics, observations: Any) -> None:
        observed.append(observations.copy())
        original(self, observations)

    monkeypatch.setattr(ObservationStatistics, "update", update)
    result = reached(generations=4)
    all_observations = torch.from_numpy(np.concatenate(observed))
    normalizer = result.mean.normalizer
    assert normalizer is not None
    assert normalizer.count == len(all_observations)
    torch.testing.assert_close(normalizer.mean, all_observations.mean(0))
    torch.testing.assert_close(normalizer.variance, all_observations.var(0, correction=0))
    assert float(normalizer.spread[1]) > 500
    assert not reached(generations=1, normalise=False).mean.normalizer


def test_statistics_far_from_zero_lose_nothing() -> None:
    rows = 1e8 + np.random.default_rng(0).normal(size=(300, 3))
    rows[:, 2] = 7.0
    merged = empty_normalizer((3,))
    for part in np.split(rows, 3):
        statistics = ObservationStatistics(merged)
        statistics.update(part[:40])
        statistics.update(part[40:])
        merged = merged.merge(statistics.normalizer)
    torch.testing.assert_close(merged.variance, torch.from_numpy(rows.var(0)), rtol=1e-6, atol=1e-9)
    assert float(merged.spread[2]) == 1.0
    assert ObservationNormalizer(0, *(torch.zeros(2),) * 2).merge(empty_normalizer((2,))).count == 0


@pytest.mark.parametrize(("common", "kinds"), [(True, 2), (False, 22)])
def test_perturbations_of_a_generation_play_the_same_episodes(common: bool, kinds: int) -> None:
    Reach.begun.clear()
    reached(generations=1, episodes=2, common=common)
    assert len(Reach.begun) == 22  # ten perturbations, mirror images among them, and the mean
    assert len({*Reach.begun}) == kinds
    if common:
        assert Reach.begun[::2] == Reach.begun[:1] * 11
    first = {*Reach.begun}
    Reach.begun.clear()
    reached(generations=2, episodes=2, common=common)
    assert first < {*Reach.begun}


def test_many_policies_at_once_earn_what_each_earns_alone() -> None:
    """Though some leave before others."""
    env_spec = EnvironmentSpec(Reach, 5)
    network = PolicyNetwork(small(1, 2), env_spec.observation_shape, env_spec.output_count)
    points = network.initial_weights + 0.5 * torch.randn(
        6, len(network.initial_weights), generator=torch.Generator().manual_seed(0)
    )
    seeds = [[10 * n, 10 * n + 1] for n in range(6)]
    normalizer = ObservationNormalizer(10, torch.tensor([100.0, 0.0]).double(), torch.tensor([10.0, 1e7]).double())
    batched = rollout(PolicyBatch(network, points, 2), env_spec.sequential, env_spec, normalizer, seeds, tanh)
    one_by_one = [
        rollout(PolicyBatch(network, points[n : n + 1], 2), env_spec.sequential, env_spec, normalizer, [seeds[n]], tanh)
        for n in range(6)
    ]
    torch.testing.assert_close(
        batched.returns, torch.cat([single.returns for single in one_by_one]), rtol=1e-4, atol=1e-4
    )
    assert batched.steps == sum(single.steps for single in one_by_one) < 60
    network.vectorized = False  # as for nets that torch cannot run with many weights at once
    unvectorized = rollout(PolicyBatch(network, points, 2), env_spec.sequential, env_spec, normalizer, seeds, tanh)
    torch.testing.assert_close(batched.returns, unvectorized.returns, rtol=1e-4, atol=1e-4)


def double(output: Any, space: Any) -> Any:
    return clip(2 * output, space)


@pytest.mark.parametrize("more", [{}, {"normalise": False, "bound": clip}], ids=["normalised", "plain"])
def test_a_saved_policy_is_the_same_one(more: Any, tmp_path: Path) -> None:
    saved = reached(generations=8, **more)
    path = tmp_path / "a.doxa"
    saved.save(path)
    loaded = load_policy(path, small(1, 2), environment=Reach)
    for expected, actual in ((saved.best, loaded.best), (saved.mean, loaded.mean)):
        assert torch.equal(expected.flat, actual.flat)
        assert (expected.normalizer is None) is (actual.normalizer is None) is bool(more)
    assert torch.equal(saved.play(20), loaded.play(20))
    assert torch.equal(saved.play(20, which="mean"), loaded.play(20, which="mean"))
    assert (saved.trajectory, saved.solved, saved.bound) == (loaded.trajectory, loaded.solved, loaded.bound)
    assert torch.equal(saved.scale, loaded.scale)
    loaded.save(tmp_path / "b.doxa")
    assert (tmp_path / "b.doxa").read_bytes() == path.read_bytes()
    length = int.from_bytes(path.read_bytes()[:8], "little")
    assert "__metadata__" in json.loads(path.read_bytes()[8 : 8 + length])


def test_buffers_frozen_weights_and_memory_are_saved_and_names_stand_in_the_file(tmp_path: Path) -> None:
    def net(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        module = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
        module[0].requires_grad_(False)
        module[1].running_mean += torch.randn(6)  # type: ignore[operator]
        return module

    saved = policy("CartPole-v1", net(0), generations=3, size=8, longest=60, progress=False)
    saved.save(tmp_path / "a.doxa")
    other_net = net(1)
    other_net[0].requires_grad_(True)  # type: ignore[index]  # what was frozen is the file's to say
    loaded = load_policy(tmp_path / "a.doxa", other_net)
    assert loaded.env_spec.longest == 60
    assert torch.equal(saved.play(10), loaded.play(10))
    x = torch.randn(5, 4)
    torch.testing.assert_close(saved.module()(x), loaded.module()(x))
    recurrent = recalled(Cell(), generations=3)
    recurrent.save(tmp_path / "b.doxa")
    assert torch.equal(load_policy(tmp_path / "b.doxa", Cell(), Recall).play(30), recurrent.play(30))


def test_what_a_policy_s_file_cannot_be_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.doxa"
    reached(bound=double).save(path)
    with pytest.raises(doxa.BadInput, match="pass environment="):
        load_policy(path, small(1, 2))
    with pytest.raises(doxa.BadInput, match="pass bound="):
        load_policy(path, small(1, 2), Reach)
    assert load_policy(path, small(1, 2), Reach, double).play(3).isfinite().all()
    with pytest.raises(doxa.BadInput, match="written for another net"):
        load_policy(path, nn.Linear(2, 1), Reach, double)
    with pytest.raises(doxa.BrokenFile, match=r"holds a doxa\.policy, not a doxa\.belief"):
        doxa.load(path, small(1, 2))
    header, tensors = read(path, "doxa.policy")
    changed = {k: v for k, v in header.items() if k not in ("format", "version")} | {"environment": "antigravity:A-v0"}
    write(path, "doxa.policy", changed, tensors)
    with pytest.raises(doxa.BadInput, match="names a module"):
        load_policy(path, small(1, 2), bound=double)
    assert "antigravity" not in sys.modules
    del tensors["scale"]
    write(path, "doxa.policy", {k: v for k, v in header.items() if k not in ("format", "version")}, tensors)
    with pytest.raises(doxa.BrokenFile, match="make no sense"):
        load_policy(path, small(1, 2), Reach, double)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(doxa.BrokenFile, match="cannot be read"):
        load_policy(path, small(1, 2), Reach, double)


def recalled(net: nn.Module, **more: Any) -> doxa.search.Policy:
    keys = {"generations": 40, "longest": 6, "episodes": 8, "size": 20, "target": None, "progress": False, **more}
    return policy(Recall, net, **keys)


@pytest.mark.parametrize("make", [Cell, Layers], ids=["cells", "layers"])
def test_who_remembers_solves_what_nobody_else_can(make: Any) -> None:
    torch.manual_seed(0)
    result = recalled(make())
    assert float(result.play(200).mean()) > 0.9
    player, env = result.player(), Recall()
    returns = []
    for seed in range(20):
        observation, over = env.reset(seed=seed)[0], False
        player.begin()
        while not over:
            observation, reward, over, _, _ = env.step(player.act(observation))
        returns.append(reward)
    assert np.mean(returns) > 0.7
    with pytest.raises(doxa.BadInput, match=r"policy\.player\(\)"):
        result.act(np.zeros(2))


def test_who_does_not_remember_earns_nothing() -> None:
    assert abs(float(recalled(small(2, 2)).play(400).mean())) < 0.2


@pytest.mark.parametrize("make", [Cell, Layers], ids=["cells", "layers"])
def test_what_is_remembered_stays_with_its_episode_and_begins_anew(make: Any) -> None:
    """Though some episodes are over before others, and their policies leave."""
    env_spec = EnvironmentSpec(Recall, 6)
    torch.manual_seed(0)
    network = PolicyNetwork(make(), env_spec.observation_shape, env_spec.output_count)
    points = network.initial_weights + torch.randn(
        8, len(network.initial_weights), generator=torch.Generator().manual_seed(0)
    )
    seeds = [[3 * n + k for k in range(3)] for n in range(8)]
    batched = rollout(PolicyBatch(network, points, 3), env_spec.sequential, env_spec, None, seeds, tanh)
    assert 3 * 24 < batched.steps < 4 * 24
    returns = []
    for n in range(8):
        net = make()
        net.load_state_dict(network.layout.weights(points[n]))
        for seed in seeds[n]:
            env, state, over, total = Recall(), None, False, 0.0
            observation, _ = env.reset(seed=seed)
            while not over:
                with torch.no_grad():
                    output, state = net(torch.from_numpy(observation).float()[None], state)
                observation, reward, over, _, _ = env.step(int(output.argmax()))
                total += reward
            returns.append(total)
    assert batched.returns.flatten().tolist() == returns


def test_a_module_that_remembers_takes_and_gives_its_state() -> None:
    result = recalled(Cell(), generations=2)
    net = result.module()
    assert result.best.normalizer is not None
    x = torch.randn(3, 2)
    normalised = ((x - result.best.normalizer.mean) / result.best.normalizer.spread).float()
    weights = result.network.layout.weights(result.best.flat)
    _, state = net(x)
    output, _ = net(x, state)
    expected, _ = torch.func.functional_call(result.network.net, weights, (normalised, state))
    torch.testing.assert_close(output, expected)


def test_who_remembers_does_so_in_workers_too(one_thread: Any) -> None:
    keys: dict[str, Any] = {"generations": 3, "size": 8, "episodes": 2}
    torch.manual_seed(0)
    net = Layers()
    in_process, pooled = (recalled(net, engine=engine, **keys) for engine in (engines.in_process(16), engines.pool(2)))
    assert torch.equal(in_process.mean.flat, pooled.mean.flat)
    assert in_process.trajectory == pooled.trajectory


class Sideways(Cell):
    def forward(self, x: Tensor, state: Any = None) -> Any:
        output, state = super().forward(x, None if state is None else state[0])
        return output, state[None]


class Demanding(Cell):
    def forward(self, x: Tensor, state: Any) -> Any:  # type: ignore[override]
        return super().forward(x, state)


class Talking(Cell):
    def forward(self, x: Tensor, state: Any = None) -> Any:
        return [super().forward(x)[0]]


def test_an_environment_that_steps_many_at_once_is_used_where_episodes_differ() -> None:
    result = policy("CartPole-v1", small(), common=False, generations=3, target=None, progress=False)
    assert [*result.env_spec._vectorized] == [82]  # two for each, and for the mean
    assert result.trajectory[-1]["return"] > 8


def test_a_plain_module_does_what_the_policy_does() -> None:
    result = reached()
    net = result.module()
    assert result.best.normalizer is not None
    observation = np.array([101.0, 300.0])
    x = (torch.from_numpy(observation) - result.best.normalizer.mean) / result.best.normalizer.spread
    weights = result.network.layout.weights(result.best.flat)
    expected = torch.func.functional_call(result.network.net, weights, (x.float()[None],))
    torch.testing.assert_close(net(torch.from_numpy(observation).float()[None]), expected)
    action = result.act(observation)
    assert action.shape == (1,)
    assert action.item() == pytest.approx(-1 + 2 * (1 + math.tanh(float(expected))), rel=1e-5)
    pole = policy("CartPole-v1", small(), generations=1, progress=False)
    assert pole.act(np.zeros(4, dtype=np.float32)) in (0, 1)
    assert len(pole.play(3)) == 3
    assert torch.equal(pole.play(3), pole.play(3))


def test_states_that_are_counted_are_zeros_and_a_one() -> None:
    result = policy("CliffWalking-v1", nn.Linear(48, 4), longest=20, generations=2, size=4, progress=False)
    assert result.act(36) in range(4)
    assert result.env_spec.longest == 20


def test_bounds() -> None:
    space = spaces.Box(np.array([-1.0, 0.0, -np.inf]), np.array([3.0, 1.0, 2.0]), dtype=np.float64)
    outputs = np.array([[0.0, 50.0, 1.5], [-50.0, 0.0, 7.0]])
    np.testing.assert_allclose(tanh(outputs, space), [[1.0, 1.0, 1.5], [-1.0, 0.5, 2.0]])
    np.testing.assert_allclose(clip(outputs, space), [[0.0, 1.0, 1.5], [-1.0, 0.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: policy("CartPoll-v1", small()), "no environment 'CartPoll-v1'; did you mean 'CartPole"),
        (lambda: policy("nowhere:Thing-v0", small()), "no environment"),
        (lambda: policy(lambda: 3, small()), "made a int"),
        (lambda: policy(Reach, small(1, 2)), "say longest="),
        (lambda: policy(Pairs, small(1, 2), longest=5), "actions are MultiDiscrete"),
        (lambda: policy("CartPole-v1", small(2, 5)), r"cannot take observations of shape \(4,\)"),
        (
            lambda: policy("CartPole-v1", small(3)),
            r"outputs of shape \(2, 3\); .* need \(2, 2\)",
        ),
        (lambda: policy("CartPole-v1", torch.relu), "must be a torch module"),
        (lambda: recalled(Sideways()), r"first axis are the observations; .* gave \(1, 2, 4\) and \(1, 3, 4\)"),
        (lambda: recalled(Demanding()), "a net that remembers takes observations and state=None"),
        (lambda: recalled(Talking()), "returned a list"),
        (lambda: policy("CartPole-v1", small(), target="high"), "target must be"),
        (lambda: policy("CartPole-v1", small(), episodes=0), "episodes must be at least 1"),
        (lambda: policy("CartPole-v1", small(), scale=-1.0), "scale must be a positive"),
        (lambda: policy("CartPole-v1", small(), resume=True), "pass checkpoint="),
        (lambda: policy("CartPole-v1", small(), sigma=1.0), "there is no setting 'sigma' of a search"),
        (lambda: policy("CartPole-v1", small(), seed=0.5), "seed must be"),
        (lambda: policy("CartPole-v1", small(), engine="pool"), "one of doxa.search.engines"),
        (lambda: policy(lambda: Reach(), small(1, 2), longest=5, engine=engines.pool(1)), "at the top of a module"),
        (lambda: reached().play(which="worst"), "which must be"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(doxa.BadInput, match=message):
        call()


@pytest.mark.parametrize(
    ("how", "workers", "kind", "message"),
    [
        ("raises", 0, RuntimeError, "a leg fell off"),
        ("reward", 0, doxa.Diverged, "returned nan: its rewards are not all finite"),
        ("seen", 0, doxa.Diverged, "an observation that is not finite"),
        ("shape", 0, doxa.BadInput, r"observation of shape \(1,\); its observation_space says \(2,\)"),
        ("raises", 1, engines.EvaluationFailed, "RuntimeError: a leg fell off"),
        ("reward", 1, doxa.Diverged, "returned nan: its rewards are not all finite"),
    ],
)
def test_an_environment_that_goes_wrong_ends_the_search_and_its_generations_are_kept(
    how: str, workers: int, kind: Any, message: str, tmp_path: Path, one_thread: Any
) -> None:
    mended, run = tmp_path / "mended", tmp_path / "run"
    keys: dict[str, Any] = {"longest": 5, "generations": 20, "size": 8, "episodes": 1, "progress": False, "seed": 3}
    engine = engines.pool(workers) if workers else engines.in_process(16)
    environment = partial(Broken, mended, how)
    with pytest.raises(kind, match=message) as error:
        policy(environment, small(1, 2), engine=engine, checkpoint=run, **keys)
    error_text = " ".join([str(error.value), *getattr(error.value, "__notes__", [])])
    assert "of 20 generations were done before, and are kept in" in error_text
    if isinstance(error.value, doxa.Diverged | engines.EvaluationFailed):
        assert 1 <= len(error.value.found.trajectory) < 20
        mended.touch()
        assert error.value.found.play(3).isfinite().all()
    mended.touch()
    resumed = policy(environment, small(1, 2), engine=engines.in_process(16), checkpoint=run, resume=True, **keys)
    uninterrupted = policy(Reach, small(1, 2), engine=engines.in_process(16), **keys)
    assert torch.equal(resumed.mean.flat, uninterrupted.mean.flat)
    assert resumed.trajectory == uninterrupted.trajectory


def test_without_gymnasium_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def missing(name: str, *more: Any, **named: Any) -> Any:
        if name.startswith("gymnasium"):
            raise ImportError(name)
        return original(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(doxa.BadInput, match=r'pip install "doxa\[rl\]"'):
        policy("CartPole-v1", small())


def test_a_net_is_left_as_it_was() -> None:
    net = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 1)).train()
    before: dict[str, Tensor] = {k: v.clone() for k, v in net.state_dict().items()}
    policy(Reach, net, longest=5, generations=2, size=4, progress=False)
    assert net.training
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
