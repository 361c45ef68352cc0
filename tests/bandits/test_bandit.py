"""The environment: what comes, and what it pays."""

from __future__ import annotations

import pytest
import torch

from bandits.small import bandit, known
from doxa import bandits
from doxa.bandits.mushrooms import EAT, PASS
from doxa.errors import BadInput


@pytest.mark.parametrize(("encoding", "columns"), [("drop_first", 95), ("one_hot", 117)])
def test_mushrooms_pay_what_the_document_says(encoding: str, columns: int) -> None:
    mushrooms = bandits.mushrooms(encoding)
    assert mushrooms.contexts.shape == (8124, columns)
    assert mushrooms.inputs.shape == (2 * 8124, columns + 2)
    edible = mushrooms.best == EAT
    assert int(edible.sum()) == 4208
    assert torch.equal(mushrooms.expected[edible], torch.tensor([5.0, 0.0]).expand(4208, 2))
    assert torch.equal(mushrooms.expected[~edible], torch.tensor([-15.0, 0.0]).expand(3916, 2))
    assert mushrooms.blind_regret == pytest.approx(0.5 * 3916 / 8124 * 15 + 0.5 * 4208 / 8124 * 5)


def test_poison_kills_half_the_time() -> None:
    mushrooms = bandits.mushrooms()
    episode = mushrooms.episode(3, 60_000)
    poisonous = mushrooms.best[episode.rows] == PASS
    eaten = episode.pays[:, EAT]
    assert set(eaten[poisonous].tolist()) == {-35.0, 5.0}
    assert set(eaten[~poisonous].tolist()) == {5.0}
    assert not bool(episode.pays[:, PASS].any())
    share, count = (eaten[poisonous] < 0).double().mean(), int(poisonous.sum())
    assert abs(float(share) - 0.5) < 4 * 0.5 / count**0.5
    # Every mushroom as likely as any other.
    assert abs(float(poisonous.double().mean()) - 3916 / 8124) < 4 * 0.5 / len(eaten) ** 0.5
    assert len(episode.rows.unique()) > 8000


def test_expected_is_the_mean_of_what_is_paid() -> None:
    mushrooms = bandits.mushrooms()
    rows = torch.arange(8124)
    coins = torch.linspace(0.005, 0.995, 100)
    paid = torch.stack([mushrooms.pay(rows, u.expand(8124, 2)) for u in coins]).mean(0)
    torch.testing.assert_close(paid, mushrooms.expected)


def test_an_episode_is_its_seed_s_alone_and_longer_ones_go_on() -> None:
    short, long, other_seed = bandit().episode(1, 50), bandit().episode(1, 80), bandit().episode(2, 50)
    assert torch.equal(short.rows, long.rows[:50])
    assert torch.equal(short.pays, long.pays[:50])
    assert torch.equal(short.random_actions, long.random_actions[:50])
    assert not torch.equal(short.rows, other_seed.rows)


def test_inputs_are_the_context_and_the_action() -> None:
    small_bandit = bandit()
    for row in (0, 7):
        for action in range(3):
            shown = small_bandit.inputs[row * 3 + action]
            assert torch.equal(shown[:4], small_bandit.contexts[row])
            assert shown[4:].tolist() == [float(a == action) for a in range(3)]


def test_blind_regret_is_that_of_every_action_in_turn() -> None:
    known_bandit = known(4)
    lost = [float(row.max() - value) for row in known_bandit.expected for value in row]
    assert known_bandit.blind_regret == pytest.approx(sum(lost) / len(lost), rel=1e-6)


def test_what_cannot_be_a_bandit_is_told_why() -> None:
    x, r = torch.zeros(5, 2), torch.zeros(5, 2)
    with pytest.raises(BadInput, match="5 rows, 3 actions"):
        bandits.Bandit("bad", x, r, lambda rows, u: r[rows], ("a", "b", "c"))
    with pytest.raises(BadInput, match="two to 256 actions"):
        bandits.Bandit("bad", x, r[:, :1], lambda rows, u: r[rows, :1], ("a",))
    with pytest.raises(BadInput, match="real numbers"):
        bandits.Bandit("bad", x.long(), r, lambda rows, u: r[rows], ("a", "b"))
    with pytest.raises(BadInput, match="NaN"):
        bandits.Bandit("bad", x, r + torch.nan, lambda rows, u: r[rows], ("a", "b"))
    with pytest.raises(BadInput, match="pay-off for each action"):
        bandits.Bandit("bad", x, r, lambda rows, u: r[rows, 0], ("a", "b"))
    with pytest.raises(BadInput, match="did you mean 'one_hot'"):
        bandits.mushrooms("onehot")
