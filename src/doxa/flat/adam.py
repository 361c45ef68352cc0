"""Adam on rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.flat.rows import alike, grid, parts
from doxa.native import at, cuda, kernel, stride, written


@dataclass(frozen=True)
class Pace:
    """Adam's numbers at one step: each net's rate (a negative one rests), and both moments' corrections."""

    rates: Tensor  # [K]
    lefts: tuple[float, float] | Tensor  # 1 − decay^step of both moments; in memory [2] while a step is captured
    first: float = 0.9
    second: float = 0.999
    small: float = 1e-8

    @classmethod
    def at(cls, rates: Tensor, step: int, first: float = 0.9, second: float = 0.999, small: float = 1e-8) -> Pace:
        """The step of a number counted from 1."""
        return cls(rates, (1 - first**step, 1 - second**step), first, second, small)

    @property
    def decays(self) -> tuple[float, float, float, float, float]:
        """What each moment keeps and what it takes in, as the kernels take them, and `small`."""
        # 1 − decay is made here: of a decay rounded to float32, 0.9999 say, it would lose most of its digits.
        return self.first, 1 - self.first, self.second, 1 - self.second, self.small

    def left(self, like: Tensor) -> Tensor:
        """Both corrections in a device's memory [2]."""
        return self.lefts if isinstance(self.lefts, Tensor) else like.new_tensor(self.lefts)


@dataclass(frozen=True)
class Moments:
    """What Adam remembers of a vector: running means of its gradient and of the gradient's square."""

    mean: Tensor
    square: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Moments:
        """Nothing seen yet."""
        return cls(torch.zeros_like(x), torch.zeros_like(x))

    def part(self, span: slice) -> Moments:
        """Those of some columns."""
        return Moments(self.mean[:, span], self.square[:, span])


def adam(x: Tensor, gradient: Tensor, pace: Pace, moments: Moments) -> None:
    """One step of Adam on the rows of x [K, n]."""
    states = moments.mean, moments.square
    even = alike(x, *states)
    on_gpu = cuda.kernel("adam", x, gradient, *states) if even else None
    if on_gpu is not None:
        rows = stride(gradient), gradient, stride(x), x, *states
        on_gpu[grid(x)](x.shape[1], *rows, pace.rates, pace.left(x), *pace.decays, cuda.WIDE)
        return
    compiled = kernel("doxa_adam", x, gradient, *states) if even and isinstance(pace.lefts, tuple) else None
    if compiled is not None:
        assert isinstance(pace.lefts, tuple)
        numbers = at(pace.rates), *pace.decays, *pace.lefts
        compiled(*x.shape, *numbers, stride(gradient), at(gradient), stride(x), at(x), *map(at, states))
        written(x, *states)
        return
    rates = pace.rates[:, None]
    if x.device.type != "cpu":
        # Who rests is known to the device alone.
        new = [t.clone() for t in (x, *states)]
        _step(pace, rates, gradient, *new)
        for old, stepped in zip((x, *states), new, strict=True):
            old.copy_(torch.where(rates >= 0, stepped, old))
        return
    for k in (pace.rates >= 0).nonzero().flatten().tolist():
        for span in parts(x.shape[1], x.device):
            _step(pace, rates[k], *(t[k, span] for t in (gradient, x, *states)))


def _step(pace: Pace, rates: Tensor, gradient: Tensor, x: Tensor, mean: Tensor, square: Tensor) -> None:
    """The same stated in torch, with one temporary."""
    first, new_first, second, new_second, small = pace.decays
    mean.mul_(first).add_(gradient, alpha=new_first)
    square.mul_(second).addcmul_(gradient, gradient, value=new_second)
    along = square.sqrt().mul_(pace.lefts[1] ** -0.5).add_(small)
    x.sub_(torch.div(mean, along, out=along).mul_(rates / pace.lefts[0]))
