"""Environments and nets that processes of their own can import."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


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


class Wrong(Reach):
    """Its rewards are no numbers."""

    def step(self, action: Any) -> Any:
        return self._seen(), math.nan, True, False, {}


class Broken(Reach):
    """Raises an error where a file says so."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def step(self, action: Any) -> Any:
        if self.mark.exists():
            raise RuntimeError("a leg fell off")
        return super().step(action)


class Deadly(Reach):
    """Ends the process that plays it, once."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def step(self, action: Any) -> Any:
        if os.getpid() != int(self.mark.read_text()) and not (dead := self.mark.with_suffix(".dead")).exists():
            dead.touch()
            os.kill(os.getpid(), 9)
        return super().step(action)
