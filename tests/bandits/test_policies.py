"""Policies: what is chosen, given what is believed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bandits.small import GAUSSIAN, LEARNERS, POLICIES, RULES, Knows, bandit, known, net
from doxa import bandits, learners, likelihoods, optimisers, posteriors, priors
from doxa.bandits.game import GameSettings
from doxa.bandits.play import start_game
from doxa.errors import BadInput
from doxa.random import streams
from doxa.random.philox import Stream, fill_normals
from doxa.training.members import Member

FROZEN = {**RULES, "updates": 0, "steps": 2000, "memory": 4}


def test_every_policy_has_an_example_under_the_laws() -> None:
    assert {type(policy) for policy in POLICIES.values()} == {*bandits.TABLE.values()}


def test_who_knows_all_regrets_nothing() -> None:
    for policy in (bandits.greedy(), bandits.thompson(2)):
        (outcome,) = bandits.play(Knows(), known(), [bandits.agent(learners.point(), policy)], **FROZEN)
        assert not bool(outcome.regret.any())
        assert not bool(outcome.expected_regret.any())


def test_a_curious_agent_that_knows_all_regrets_in_proportion() -> None:
    """Slope ε · E[regret of a random act], within four standard errors, on a straight line."""
    game = known()
    agents = [bandits.agent(learners.point(), bandits.greedy(e), seed=s) for e in (0.05, 0.5) for s in range(4)]
    outcomes = bandits.play(Knows(), game, agents, **FROZEN)
    lost = game.expected.amax(1, keepdim=True) - game.expected
    for outcome in outcomes:
        epsilon = outcome.agent.policy.epsilon
        expected, variance = epsilon * game.blind_regret, epsilon * float(lost.square().mean())
        mean = float(outcome.expected_regret[-1]) / FROZEN["steps"]
        assert abs(mean - expected) < 4 * (variance / FROZEN["steps"]) ** 0.5
    curve = torch.stack([o.expected_regret for o in outcomes[4:]]).mean(0)
    line = bandits.slope(curve)
    assert line.r2 > 0.99
    assert line.slope == pytest.approx(0.5 * game.blind_regret, rel=0.15)


def test_a_curious_agent_is_curious_in_every_action_alike() -> None:
    (outcome,) = bandits.play(
        net(), bandit(), [bandits.agent(LEARNERS["point"], bandits.greedy(1.0))], **{**FROZEN, "steps": 3000}
    )
    counts = outcome.taken.bincount(minlength=3).double()
    assert float((counts - 1000).abs().max()) < 4 * (3000 * 2 / 9) ** 0.5


ZEROS = torch.zeros(3, 2)
NOTHING = bandits.Bandit("nothing", ZEROS[:, :1], ZEROS, lambda rows, u: ZEROS[rows], ("a", "b"))


class Biases(nn.Module):
    """The reward of each action is a weight of its own: a bandit without contexts."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Linear(2, 1, bias=False)
        nn.init.zeros_(self.values.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.values(x[:, -2:])


@pytest.mark.parametrize(("draws", "gap"), [(1, 0.5), (2, 0.5), (1, 2.0)])
def test_thompson_takes_an_action_as_often_as_it_is_best(draws: int, gap: float) -> None:
    """With independent N(±gap/2, 1) beliefs of two actions: P = Φ(gap √S / √2)."""
    biases = Biases()
    nn.init.constant_(biases.values.weight, gap / 2)
    biases.values.weight.data[0, 1] *= -1
    learner = learners.variational(priors.gaussian(1.0), posterior=posteriors.mean_field(scale=1.0))
    (outcome,) = bandits.play(biases, NOTHING, [bandits.agent(learner, bandits.thompson(draws))], **FROZEN)
    expected = 0.5 * (1 + torch.erf(torch.tensor(gap * draws**0.5 / 2)))
    share = float((outcome.taken == 0).double().mean())
    assert abs(share - float(expected)) < 4 * float((expected * (1 - expected) / FROZEN["steps"]).sqrt())


class Shared(Biases):
    """One uncertain weight pays for either action, and a certain one more for the first."""

    def __init__(self, gap: float) -> None:
        super().__init__()
        self.values = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.values.weight)
        self.register_buffer("gap", torch.tensor(gap))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.values(torch.ones_like(x[:, :1])) + self.gap * x[:, -2:-1]


@pytest.mark.parametrize("draws", [1, 3])
def test_actions_that_share_a_weight_differ_by_chance_where_each_is_drawn_for(draws: int) -> None:
    """One draw for both leaves the gap as it is; draws of their own take the first action with Φ(gap √S / √2)."""
    gap = 0.6
    learner = learners.variational(priors.gaussian(1.0), posterior=posteriors.mean_field(scale=1.0))
    together, apart = (
        bandits.play(Shared(gap), NOTHING, [bandits.agent(learner, policy)], **FROZEN)[0]
        for policy in (bandits.thompson(draws), bandits.thompson(draws, per_action=True))
    )
    assert not bool(together.taken.any())
    expected = 0.5 * (1 + torch.erf(torch.tensor(gap * draws**0.5 / 2)))
    share = float((apart.taken == 0).double().mean())
    assert abs(share - float(expected)) < 4 * float((expected * (1 - expected) / FROZEN["steps"]).sqrt())


def test_thompson_of_an_ensemble_listens_to_one_member_at_a_time() -> None:
    """Two of three members, of fixed opinions, prefer the second action: so do two thirds of the steps."""

    class Opinion(Biases):
        def reset_parameters(self) -> None:
            with torch.no_grad():
                self.values.weight.copy_(torch.tensor([[-1.0, 1.0]]))

    opinion = Opinion()
    opinion.values.weight.data.copy_(torch.tensor([[3.0, -3.0]]))
    agents = [bandits.agent(learners.ensemble(learners.point(), 3), p) for p in (bandits.thompson(), bandits.greedy())]
    drawn, averaged = bandits.play(opinion, NOTHING, agents, **FROZEN)
    share = float((drawn.taken == 1).double().mean())
    assert abs(share - 2 / 3) < 4 * (2 / 9 / FROZEN["steps"]) ** 0.5
    # Averaged, the loud one wins.
    assert not bool(averaged.taken.any())


def test_the_posterior_of_neural_linear_is_the_closed_form() -> None:
    """Against NumPy, from the features of the net as torch gives them; then its draws and choices."""
    scale, sigma = 0.7, 0.3
    agents = [bandits.agent(LEARNERS["point"], bandits.neural_linear(s), seed=s_) for s, s_ in ((scale, 0), (2.0, 1))]
    members = [Member(net(a.seed), a.learner, a.seed, a.lr) for a in agents]
    rules = GameSettings(steps=5, updates=1, batch_size=4, memory=16, prefill=11)
    _, monitor, _ = start_game(members, bandit(), agents, likelihoods.gaussian(sigma), optimisers.adam(), None, rules)
    game, policy = monitor.game, monitor.game.policy
    policy.refresh(torch.tensor([11]))
    for k, prior in enumerate((scale, 2.0)):
        member_net = members[k].net
        x = game.inputs[game.replay.cells[k, :11]]
        phi = torch.cat([member_net[:2](x), torch.ones(11, 1)], 1).detach().numpy()
        rewards = game.replay.rewards[k, :11].numpy()
        precision = phi.T @ phi / sigma**2 + np.eye(9) / prior**2
        covariance = np.linalg.inv(precision)
        np.testing.assert_allclose(policy.mean[k], covariance @ phi.T @ rewards / sigma**2, rtol=1e-8, atol=1e-10)
        factor = policy.factor[k].numpy()
        np.testing.assert_allclose(factor @ factor.T, covariance, rtol=1e-8, atol=1e-10)
    # A choice is the best action by mean + factor · z.
    stream = Stream(game.net_seeds, 4)
    z = torch.empty(2, 9, dtype=torch.float64)
    fill_normals(z, stream.with_number(streams.BANDIT_DRAWS))
    x = game.inputs.view(30, 3, -1)[torch.tensor([3, 17])]
    chosen = policy.choose(x, stream)
    for k in range(2):
        phi = torch.cat([members[k].net[:2](x[k]), torch.ones(3, 1)], 1).detach()
        assert int(chosen[k]) == int((phi @ (policy.mean[k] + policy.factor[k] @ z[k])).argmax())


def test_bad_settings_are_told_why() -> None:
    with pytest.raises(BadInput, match="probability"):
        bandits.greedy(1.5)
    with pytest.raises(BadInput, match="at least 1"):
        bandits.thompson(0)
    with pytest.raises(BadInput, match="at most"):
        bandits.thompson(10_000)
    with pytest.raises(BadInput, match="100 for each of 3 actions are 300"):
        bandits.play(
            net(), bandit(), [bandits.agent(LEARNERS["shared"], bandits.thompson(100, per_action=True))], **RULES
        )
    with pytest.raises(BadInput, match="positive"):
        bandits.neural_linear(0.0)
    with pytest.raises(BadInput, match="not an ensemble"):
        bandits.play(net(), bandit(), [bandits.agent(LEARNERS["ensemble"], bandits.neural_linear())], **RULES)
    twice = nn.Sequential(net(), nn.Tanh())
    with pytest.raises(BadInput, match="does something to its output"):
        bandits.play(twice, bandit(), [bandits.agent(LEARNERS["point"], bandits.neural_linear())], **RULES)
    with pytest.raises(BadInput, match="one output, the reward"):
        bandits.play(Knows(), known(), [bandits.agent(learners.point(GAUSSIAN), bandits.neural_linear())], **RULES)


def test_draws_of_more_masks_than_they_have_streams_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask of one draw would be a mask of the next one."""
    monkeypatch.setattr(streams, "BANDIT_STREAMS_PER_DRAW", 1)
    few = {**RULES, "steps": 2, "updates": 1, "memory": 4}
    learner = learners.dropout(0.2, 0.1)
    with pytest.raises(BadInput, match=r"2 weights with dropout.*thompson\(draws=1\)"):
        bandits.play(net(), bandit(), [bandits.agent(learner, bandits.thompson(2))], **few)
    bandits.play(net(), bandit(), [bandits.agent(learner, bandits.thompson(1))], **few)
