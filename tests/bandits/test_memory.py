"""What is remembered: the latest, in any order."""

from __future__ import annotations

from collections import deque

import pytest
import torch

from doxa.bandits import Replay
from doxa.bandits.replay import shuffled_places


@pytest.mark.parametrize("pushes", [3, 7, 8, 30])
def test_the_memory_holds_the_latest(pushes: int) -> None:
    size, agents = 7, 2
    replay = Replay(agents, size, torch.zeros(1))
    last: list[deque[tuple[int, float]]] = [deque(maxlen=size) for _ in range(agents)]
    for number in range(pushes):
        cells, rewards = torch.tensor([number, 100 + number]), torch.tensor([0.5 * number, -1.0 * number])
        replay.push(torch.tensor([number]), cells, rewards)
        for k in range(agents):
            last[k].append((int(cells[k]), float(rewards[k])))
    count = int(replay.count(torch.tensor([pushes - 1])))
    assert count == min(pushes, size)
    for k in range(agents):
        stored = zip(replay.cells[k, :count].tolist(), replay.rewards[k, :count].tolist(), strict=True)
        assert sorted(stored) == sorted(last[k])


def test_places_are_each_agent_s_own() -> None:
    replay = Replay(2, 4, torch.zeros(1))
    replay.cells[:] = torch.arange(8).view(2, 4)
    replay.rewards[:] = -torch.arange(8.0).view(2, 4)
    cells, rewards = replay.look_up(torch.tensor([1, 0, 1]), torch.tensor([[0, 3], [2, 2], [1, 0]]))
    assert cells.tolist() == [[4, 7], [2, 2], [5, 4]]
    assert rewards.tolist() == [[-4, -7], [-2, -2], [-5, -4]]


@pytest.mark.parametrize("count", [1, 5, 8])
def test_every_place_comes_once_the_empty_ones_last(count: int) -> None:
    u = torch.rand(300, 8, generator=torch.Generator().manual_seed(0))
    places = shuffled_places(u, torch.tensor([count]))
    assert torch.equal(places.sort(1).values, torch.arange(8).expand(300, 8))
    assert torch.equal(places[:, :count].sort(1).values, torch.arange(count).expand(300, count))
    # Each as likely to come first as any other.
    firsts = places[:, 0].bincount(minlength=8)[:count].double()
    assert float((firsts - 300 / count).abs().max()) <= 4 * (300 / count) ** 0.5
