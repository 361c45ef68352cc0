"""Environments and nets that processes of their own can import."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from torch import Tensor, nn


class Reach(gymnasium.Env[Any, Any]):
    """Walk to where a number says; it shows place and goal, and every step costs the square of the distance."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,))
    action_space: Any = spaces.Box(np.array([-1.0], dtype=np.float32), np.array([3.0], dtype=np.float32))
    begun: list[float] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.goal, self.time = 0.0, float(self.np_random.uniform(-2, 2)), 0
        self.begun.append(self.goal)
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.array([100 + self.place, 1000 * self.goal])

    def step(self, action: Any) -> Any:
        self.place += float(np.clip(action, -1, 3).reshape(-1)[0]) - 1
        self.time += 1
        far = abs(self.goal) > 1.5 and self.time == 3  # some episodes are shorter than others
        return self._seen(), -((self.place - self.goal) ** 2), far, self.time == 5, {}


class Broken(Reach):
    """Goes wrong in one of several ways on the way to a goal that few have, until a file says that it is mended."""

    def __init__(self, mended: Path, how: str) -> None:
        self.mended, self.how = mended, how

    def step(self, action: Any) -> Any:
        observation, reward, ended, cut, info = super().step(action)
        if self.mended.exists() or self.goal < 1.2:
            return observation, reward, ended, cut, info
        if self.how == "raises":
            raise RuntimeError("a leg fell off")
        if self.how == "reward":
            return observation, math.nan, ended, cut, info
        if self.how == "shape":
            return observation[:1], reward, ended, cut, info
        return observation + math.inf, reward, ended, cut, info


class Deadly(Reach):
    """Ends the process that plays it, once."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def step(self, action: Any) -> Any:
        if os.getpid() != int(self.mark.read_text()) and not (dead := self.mark.with_suffix(".dead")).exists():
            dead.touch()
            os.kill(os.getpid(), 9)
        return super().step(action)


class Recall(gymnasium.Env[Any, Any]):
    """It shows a sign, then nothing, and at last asks which it was: 1 for the right answer, −1 for the other.

    Some signs are asked for later than others. What is seen when it is asked is always the same: who does not remember
    earns nothing on average.
    """

    observation_space = spaces.Box(-1.0, 1.0, (2,))  # the sign, and whether an answer is wanted
    action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.right, self.last, self.time = (int(v) for v in (*self.np_random.integers((2, 2)), 0))
        return np.array([2.0 * self.right - 1, 0.0]), {}

    def step(self, action: Any) -> Any:
        answer_due = self.time == 2 + self.last
        reward = (1.0 if int(action) == self.right else -1.0) if answer_due else 0.0
        self.time += 1
        return np.array([0.0, float(self.time == 2 + self.last)]), reward, answer_due, False, {}


class Cell(nn.Module):
    """A recurrent net of cells, its state one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.GRUCell(2, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        state = self.cell(x, state)
        return self.out(state), state


class Layers(nn.Module):
    """A recurrent net of torch's layers, which keep the rows of their two states second."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTM(2, 4, num_layers=2, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        rows_second = None if state is None else tuple(s.transpose(0, 1).contiguous() for s in state)
        outputs, new_state = self.cell(x.unsqueeze(1), rows_second)
        return self.out(outputs[:, 0]), tuple(s.transpose(0, 1) for s in new_state)
