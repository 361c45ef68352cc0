"""What agents remember."""

from __future__ import annotations

import torch
from torch import Tensor


class Replay:
    """The latest `size` things that each of M agents did: row and action as one number, and the reward, [M, size].

    The k-th thing lies at k modulo `size`. What a net was shown is looked up by row and action when it is needed.
    Lin (1992), Self-improving reactive agents based on reinforcement learning, planning and teaching.
    """

    def __init__(self, agents: int, size: int, like: Tensor) -> None:
        self.size = size
        self.cells = torch.zeros(agents, size, dtype=torch.int64, device=like.device)
        self.rewards = like.new_zeros(agents, size)

    def push(self, number: Tensor, cells: Tensor, rewards: Tensor) -> None:
        """Put a thing [M] in the place of the oldest one; `number` [1] counts them from 0."""
        place = number % self.size
        self.cells.index_copy_(1, place, cells[:, None])
        self.rewards.index_copy_(1, place, rewards[:, None])

    def count(self, number: Tensor) -> Tensor:
        """How many there are once the thing of this number is in."""
        return (number + 1).clamp_max(self.size)

    def look_up(self, agents: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Cells and rewards [K, n] at places of some agents' memories."""
        return self.cells[agents[:, None], places], self.rewards[agents[:, None], places]

    def state(self) -> dict[str, Tensor]:
        return {"cells": self.cells, "rewards": self.rewards}


def shuffled_places(u: Tensor, count: Tensor) -> Tensor:
    """All places in the order of their uniform numbers u [K, size], the first `count` of them before the empty ones."""
    is_empty = torch.arange(u.shape[1], device=u.device) >= count
    return u.masked_fill(is_empty, 2.0).argsort(dim=1, stable=True)
