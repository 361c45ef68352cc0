"""Test functions, each of vectors [..., d] with their values [...], and where they are lowest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.errors import BadInput


@dataclass(frozen=True)
class Function:
    """A function to search, where it is lowest, a start from which to try, and of how many numbers it can be."""

    name: str
    value: Callable[[Tensor], Tensor]
    start: tuple[float, ...]
    minima: tuple[tuple[float, ...], ...]
    least: int = 1
    most: float = math.inf

    def __call__(self, w: Tensor) -> Tensor:
        self.require_width(w.shape[-1] if w.dim() else 0)
        return self.value(w)

    def require_width(self, width: int) -> None:
        """Refuse vectors that it is not a function of."""
        if not self.least <= width <= self.most:
            allowed_widths = f"at least {self.least}" if self.most > self.least else f"exactly {self.least}"
            raise BadInput(f"{self.name} is a function of {allowed_widths} numbers; the vector here has {width}")


def _himmelblau(w: Tensor) -> Tensor:
    x, y = w.unbind(-1)
    return (x * x + y - 11).square() + (x + y * y - 7).square()


def _sphere(w: Tensor) -> Tensor:
    return w.square().sum(-1)


def _rosenbrock(w: Tensor) -> Tensor:
    a, b = w[..., :-1], w[..., 1:]
    return (100 * (b - a.square()).square() + (1 - a).square()).sum(-1)


def _rastrigin(w: Tensor) -> Tensor:
    return (w.square() - 10 * torch.cos(2 * math.pi * w) + 10).sum(-1)


himmelblau = Function(
    "himmelblau",
    _himmelblau,
    (0.0, 0.0),
    ((3.0, 2.0), (-2.805118, 3.131312), (-3.779310, -3.283186), (3.584428, -1.848126)),
    least=2,
    most=2,
)
"""f(x, y) = (x² + y − 11)² + (x + y² − 7)², four minima of 0. Himmelblau (1972), Applied nonlinear programming."""

sphere = Function("sphere", _sphere, (1.0, 1.0), ((0.0, 0.0),))
"""f(w) = ‖w‖²."""

rosenbrock = Function("rosenbrock", _rosenbrock, (-1.0, 1.0), ((1.0, 1.0),), least=2)
"""f(w) = Σ 100 (w_{i+1} − w_i²)² + (1 − w_i)². Rosenbrock (1960)."""

rastrigin = Function("rastrigin", _rastrigin, (2.0, -3.0), ((0.0, 0.0),))
"""f(w) = Σ w_i² − 10 cos 2πw_i + 10, a minimum at every whole number. Rastrigin (1974)."""

TABLE = {function.name: function for function in (sphere, himmelblau, rosenbrock, rastrigin)}
