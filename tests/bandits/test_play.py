"""Games: an agent is in company what it is alone, goes on where it stopped, and learns what a plain loop would."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bandits.small import LEARNERS, PAIRS, POLICIES, RULES, bandit, net, numbers, play_small
from doxa import bandits, learners, likelihoods, priors, rates
from doxa import kl_weights as kl_weights_room
from doxa.bandits.game import Game
from doxa.errors import BadInput, BrokenFile, Interrupted
from doxa.gradients.point import PointGradient
from doxa.gradients.variational import VariationalGradient
from doxa.random import streams
from doxa.random.keys import seed_of
from doxa.random.philox import Stream, fill_uniform
from doxa.storage import sealed

CURIOUS = bandits.greedy(0.0), bandits.greedy(0.5), bandits.greedy(1.0)


def three_agents(learner: str, policy: str) -> list[bandits.agent]:
    """Agents that differ in what agents of one program may."""
    rate = rates.step(0.03, every=4)
    return [
        bandits.agent(LEARNERS[learner], POLICIES[policy], seed=1, lr=0.02, reward_scale=2.0),
        bandits.agent(LEARNERS[learner], POLICIES[policy], seed=2, lr=rate),
        bandits.agent(LEARNERS[learner], POLICIES[policy], seed=1, lr=rate, reward_scale=0.5),
    ]


def test_policies_of_one_kind_keep_their_own_numbers() -> None:
    """One draw beside three, one ε beside another: each as alone."""
    for learner, policies in (("mixture", (bandits.thompson(1), bandits.thompson(3))), ("point", CURIOUS)):
        agents = [bandits.agent(LEARNERS[learner], policy, seed=5, lr=0.01) for policy in policies]
        for agent, outcome in zip(agents, play_small(agents, steps=40), strict=True):
            assert torch.equal(outcome.taken, play_small([agent], steps=40)[0].taken)


@pytest.mark.parametrize(("learner", "policy"), PAIRS)
def test_an_agent_is_what_it_is_alone(learner: str, policy: str) -> None:
    agents = three_agents(learner, policy)
    for agent, outcome in zip(agents, play_small(agents), strict=True):
        (alone,) = play_small([agent])
        assert torch.equal(outcome.taken, alone.taken)
        assert torch.equal(outcome.regret, alone.regret)
        for numbers_together, numbers_alone in zip(numbers(outcome), numbers(alone), strict=True):
            torch.testing.assert_close(numbers_together, numbers_alone, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("learner", "policy"),
    [("point", "curious"), ("local", "thompson"), ("mixture", "thompson, apart"), ("point", "neural linear")],
)
def test_a_game_resumes_to_the_bit(learner: str, policy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    agents = three_agents(learner, policy)
    uninterrupted = play_small(agents, checkpoint=tmp_path / "whole")
    turn, left = Game._act, [7]

    def interrupting(game: Game, *args: Any) -> None:
        turn(game, *args)
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Game, "_act", interrupting)
    with pytest.raises(Interrupted, match="step 7 of 12"):
        play_small(agents, checkpoint=tmp_path / "cut")
    resumed = play_small(agents, checkpoint=tmp_path / "cut", resume=True)
    for one, other in zip(resumed, uninterrupted, strict=True):
        assert torch.equal(one.taken, other.taken)
        assert all(torch.equal(a, b) for a, b in zip(numbers(one), numbers(other), strict=True))
    files = [(tmp_path / name / "checkpoint.doxa").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]
    # A finished game is only read.
    again = play_small(agents, checkpoint=tmp_path / "cut", resume=True)
    assert all(torch.equal(a.taken, b.taken) for a, b in zip(again, uninterrupted, strict=True))


def test_a_game_that_stands_elsewhere_than_its_run_is_broken(tmp_path: Path) -> None:
    play_small(three_agents("point", "curious"), checkpoint=tmp_path)
    header, tensors = sealed.read(tmp_path / "checkpoint.doxa", "doxa.bandits")
    header = {k: v for k, v in header.items() if k not in ("format", "version")} | {"done": 0}
    sealed.write(tmp_path / "checkpoint.doxa", "doxa.bandits", header, tensors)
    with pytest.raises(BrokenFile, match="a run of 0 steps and a game of 12"):
        play_small(three_agents("point", "curious"), checkpoint=tmp_path, resume=True)


def test_agents_of_several_kinds_play_part_by_part(tmp_path: Path) -> None:
    agents = [
        bandits.agent(LEARNERS[one], POLICIES[p], seed=3) for one, p in (("point", "greedy"), ("local", "thompson"))
    ]
    outcomes = play_small(agents, checkpoint=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["part-0", "part-1"]
    for agent, outcome in zip(agents, outcomes, strict=True):
        assert outcome.agent is agent
        assert torch.equal(outcome.taken, play_small([agent])[0].taken)
        assert torch.equal(outcome.rows, outcomes[0].rows), "agents of a seed meet the same"
        assert torch.equal(outcome.pays, outcomes[0].pays)


def test_a_game_is_the_plain_loop() -> None:
    """Written out with a list for a memory and torch's own Adam, for a greedy agent that starts with little."""
    game, memory, batch, updates, steps, scale, sigma = bandit(), 6, 5, 3, 20, 1.7, 0.5
    agent = bandits.agent(learners.point(), bandits.greedy(), seed=4, lr=rates.step(0.05, every=8), reward_scale=scale)
    (outcome,) = play_small([agent], steps=steps, memory=memory, prefill=4, batch_size=batch, updates=updates)
    episode = game.episode(4, steps + 4)
    plain_net = net(4)
    adam = torch.optim.Adam(plain_net.parameters())
    memory_list: list[tuple[torch.Tensor, float]] = [
        (
            game.inputs[3 * episode.rows[t] + episode.random_actions[t]].double(),
            float(episode.pays[t, episode.random_actions[t]]),
        )
        for t in range(4)
    ]
    lost, taken = 0.0, []
    for t in range(steps):
        row, pays = int(episode.rows[4 + t]), episode.pays[4 + t].tolist()
        offers = [game.inputs[3 * row + a].double() for a in range(3)]
        values = [float(plain_net(offer[None]).detach()) for offer in offers]
        action = values.index(max(values))
        taken.append(action)
        expected = game.expected[row].tolist()
        lost += pays[expected.index(max(expected))] - pays[action]
        assert float(outcome.regret[t]) == pytest.approx(lost, rel=1e-6, abs=1e-6)
        thing = offers[action], pays[action]
        if len(memory_list) < memory:
            memory_list.append(thing)
        else:
            memory_list[(4 + t) % memory] = thing
        u = torch.empty(1, updates * batch)
        fill_uniform(u, Stream(torch.tensor([seed_of((4, "net", 0))]), t, streams.BANDIT_BATCH))
        places = (u[0] * len(memory_list)).long().view(updates, batch).tolist()
        for group in adam.param_groups:
            group["lr"] = 0.05 * 0.5 ** (t // 8)
        for minibatch in places:
            x = torch.stack([memory_list[i][0] for i in minibatch])
            r = torch.tensor([memory_list[i][1] / scale for i in minibatch], dtype=torch.float64)
            loss = (0.5 * ((plain_net(x)[:, 0] - r) / sigma).square()).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
    assert outcome.taken.tolist() == taken
    assert outcome.belief is not None
    flat = torch.cat([p.detach().reshape(-1) for p in plain_net.parameters()])
    torch.testing.assert_close(outcome.belief.posterior.mean, flat, rtol=1e-6, atol=1e-8)


def test_the_kl_is_weighed_by_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The free energy of the memory: KL over as many things as there are, 1/4096 once it is full as the document's."""
    kl_weights: list[float] = []
    evaluate = VariationalGradient.evaluate

    def watched(gradient: Any, batch: Any, context: Any) -> Any:
        kl_weights.append(float(context.kl_weight[0]))
        return evaluate(gradient, batch, context)

    monkeypatch.setattr(VariationalGradient, "evaluate", watched)
    play_small([bandits.agent(LEARNERS["local"], bandits.thompson())], steps=6, memory=10, prefill=7, updates=1)
    assert kl_weights == pytest.approx([1 / n for n in (8, 9, 10, 10, 10, 10)])
    # Blundell's shares halve from one update of a step to the next, and begin anew with the next step.
    kl_weights.clear()
    halving = learners.variational(priors.gaussian(1.0), kl_weight=kl_weights_room.geometric())
    play_small([bandits.agent(halving, bandits.thompson())], steps=3, memory=12, batch_size=4, updates=3)
    assert kl_weights == pytest.approx([3 * share / 7 / 12 for share in (4, 2, 1)] * 3)


def test_without_replacement_a_step_is_one_pass_over_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []
    evaluate = PointGradient.evaluate

    def watched(gradient: Any, batch: Any, context: Any) -> Any:
        seen.append(torch.cat([batch.x, batch.y], 2))
        return evaluate(gradient, batch, context)

    monkeypatch.setattr(PointGradient, "evaluate", watched)
    agents = [bandits.agent(LEARNERS["point"], bandits.greedy(), seed=seed) for seed in (1, 2)]
    outcomes = play_small(agents, steps=4, memory=12, batch_size=4, updates=3, replacement=False)
    passes = [torch.cat(seen[3 * t : 3 * t + 3], 1) for t in range(4)]
    for k, (outcome, agent) in enumerate(zip(outcomes, agents, strict=True)):
        episode = bandit().episode(agent.seed, 16)
        actions = torch.cat([episode.random_actions[:12], outcome.taken])
        rewards = episode.pays.gather(1, actions[:, None])
        things = torch.cat([bandit().inputs[3 * episode.rows + actions], rewards], 1)
        for t in range(4):
            assert sorted(passes[t][k].tolist()) == sorted(things[t + 1 : t + 13].double().tolist())
        assert not torch.equal(passes[0][k], passes[1][k]), "shuffled anew"
    assert not torch.equal(passes[0][0], passes[0][1])


def test_one_pass_takes_no_more_than_there_is() -> None:
    agent = bandits.agent(LEARNERS["point"], bandits.greedy())
    with pytest.raises(BadInput, match="made of 12 things, but at first 8 are remembered"):
        play_small([agent], memory=12, prefill=7, batch_size=4, updates=3, replacement=False)
    play_small([agent], steps=8, memory=12, prefill=7, batch_size=4, updates=2, replacement=False)


def test_learning_pays() -> None:
    agents = [bandits.agent(LEARNERS["point"], bandits.greedy(), seed=s, lr=0.02) for s in range(3)]
    options = {"steps": 300, "updates": 8, "memory": 100}
    taught = play_small(agents, **options)
    ignorant = play_small(agents, **{**options, "updates": 0})
    for one, other in zip(taught, ignorant, strict=True):
        assert float(one.expected_regret[-1]) < 0.5 * float(other.expected_regret[-1])


def test_one_that_diverges_rests_and_the_others_go_on() -> None:
    agents = [bandits.agent(LEARNERS["point"], bandits.greedy(), seed=0, lr=lr) for lr in (1e308, 0.01)]
    with pytest.warns(UserWarning, match="diverged and learns no more"):
        bad, good = play_small(agents)
    assert bad.trouble is not None
    assert good.trouble is None
    (alone,) = play_small(agents[1:])
    assert torch.equal(good.taken, alone.taken)


def test_accounts_against_a_plain_count() -> None:
    (outcome,) = play_small([bandits.agent(LEARNERS["point"], bandits.greedy(0.5))], steps=200)
    best = [max(range(3), key=lambda a, r=row: float(bandit().expected[r, a])) for row in outcome.rows.tolist()]
    taken = outcome.taken.tolist()
    wrong, missed, expected = 0, 0, 0.0
    for t, (b, a, row) in enumerate(zip(best, taken, outcome.rows.tolist(), strict=True)):
        wrong, missed = wrong + (a == 1 and b != 1), missed + (a != 1 and b == 1)
        expected += float(bandit().expected[row, b] - bandit().expected[row, a])
        assert int(outcome.false_positives("b")[t]) == wrong
        assert int(outcome.false_negatives("b")[t]) == missed
    assert float(outcome.expected_regret[-1]) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(BadInput, match="window"):
        outcome.rates("b", 0)
    shares = outcome.rates("b", 50)
    for w in range(4):
        pairs = list(zip(best, taken, strict=True))[50 * w : 50 * w + 50]
        assert float(shares["all"][w]) == pytest.approx(sum(a == 1 for _, a in pairs) / 50)
        for name, actions in (("best", [a for b, a in pairs if b == 1]), ("not_best", [a for b, a in pairs if b != 1])):
            assert float(shares[name][w]) == pytest.approx(sum(a == 1 for a in actions) / len(actions))


def test_bad_input_is_told_why(tmp_path: Path) -> None:
    agent = bandits.agent(LEARNERS["point"], bandits.greedy())
    wrong: dict[str, Any] = {"policy": learners.point(), "learner": learners.point, "optimiser": torch.optim.SGD}
    with pytest.raises(BadInput, match="list of doxa"):
        bandits.play(net(), bandit(), [], **RULES)
    with pytest.raises(BadInput, match="2 nets for 1 agents"):
        bandits.play([net(), net()], bandit(), [agent], **RULES)
    with pytest.raises(BadInput, match="no more can be remembered"):
        play_small([agent], prefill=21)
    with pytest.raises(BadInput, match="steps must be at least 1"):
        play_small([agent], steps=0)
    with pytest.raises(BadInput, match="policy must be"):
        bandits.agent(learners.point(), wrong["policy"])
    with pytest.raises(BadInput, match="learner must be"):
        bandits.agent(wrong["learner"], bandits.greedy())
    with pytest.raises(BadInput, match="reward_scale"):
        bandits.agent(learners.point(), bandits.greedy(), reward_scale=0.0)
    with pytest.raises(BadInput, match="optimiser"):
        play_small([agent], optimiser=wrong["optimiser"])
    with pytest.raises(BadInput, match="cannot run"):
        bandits.play(net(inputs=5), bandit(), [agent], **RULES)
    with pytest.raises(BadInput, match="no action 'z'"):
        play_small([agent])[0].taking("z")
    with pytest.raises(BadInput, match="pass checkpoint="):
        play_small([agent], resume=True)
    play_small([agent], checkpoint=tmp_path)
    with pytest.raises(BadInput, match="already holds a game"):
        play_small([agent], checkpoint=tmp_path)
    with pytest.raises(BadInput, match="other settings \\(updates\\)"):
        play_small([agent], checkpoint=tmp_path, resume=True, updates=3)
    with pytest.warns(UserWarning, match="the same in everything"):
        play_small([agent, bandits.agent(LEARNERS["point"], bandits.greedy())], steps=1)
    with pytest.raises(BadInput, match="negative"):
        play_small([bandits.agent(LEARNERS["point"], bandits.greedy(), lr=lambda moment: -1.0)])
    with pytest.raises(BadInput, match="targets have shape"):
        bandits.play(nn.Linear(7, 2).double(), bandit(), [agent], **RULES)
    with pytest.raises(BadInput):
        bandits.play(net(), bandit(), [agent], **{**RULES, "likelihood": likelihoods.categorical()})


@pytest.mark.parametrize(
    "learner",
    [
        learners.langevin(priors.gaussian(1.0)),
        learners.swa(),
        learners.ema(),
        learners.ensemble(learners.swa(), 2),
    ],
)
def test_learners_that_keep_their_way_do_not_play(learner: Any) -> None:
    with pytest.raises(BadInput, match=r"an agent acts on what it believes now.*use point"):
        play_small([bandits.agent(learner, bandits.greedy())])
