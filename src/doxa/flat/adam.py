"""Adam on rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.flat.rows import column_chunks, same_stride, triton_grid
from doxa.kernels import cuda, kernel, mark_written, pointer, stride

# 1 − decay^step of both moments: as floats, or in memory [2] while a step is recorded.
BiasCorrections = tuple[float, ...] | Tensor
# What each moment keeps and what it takes in, as the kernels take them, and eps.
Decays = tuple[float, float, float, float, float]


def decays(beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> Decays:
    """Adam's constants."""
    # 1 − beta is made here: of a beta rounded to float32, 0.9999 say, it would lose most of its digits.
    return beta1, 1 - beta1, beta2, 1 - beta2, eps


def bias_corrections(step: int, beta1: float = 0.9, beta2: float = 0.999) -> tuple[float, float]:
    """What the start has left of both moments at a step, counted from 1."""
    return 1 - beta1**step, 1 - beta2**step


def as_tensor(values: BiasCorrections, like: Tensor) -> Tensor:
    """Both corrections in a device's memory [2]."""
    return values if isinstance(values, Tensor) else like.new_tensor(values)


@dataclass(frozen=True)
class Moments:
    """What Adam remembers of a vector: running means of its gradient and of the gradient's square."""

    mean: Tensor
    square: Tensor

    @classmethod
    def initial(cls, x: Tensor) -> Moments:
        """Nothing seen yet."""
        return cls(torch.zeros_like(x), torch.zeros_like(x))

    def columns(self, span: slice) -> Moments:
        """Those of some columns."""
        return Moments(self.mean[:, span], self.square[:, span])


def adam(
    x: Tensor, gradient: Tensor, moments: Moments, rates: Tensor, corrections: BiasCorrections, decays: Decays
) -> None:
    """One step of Adam on the rows of x [K, n], each at its rate [K]; a negative one rests."""
    states = moments.mean, moments.square
    same_strides = same_stride(x, *states)
    on_gpu = cuda.kernel("adam", x, gradient, *states) if same_strides else None
    if on_gpu is not None:
        rows = stride(gradient), gradient, stride(x), x, *states
        on_gpu[triton_grid(x)](x.shape[1], *rows, rates, as_tensor(corrections, x), *decays, cuda.WIDE)
        return
    compiled = kernel("doxa_adam", x, gradient, *states) if same_strides and isinstance(corrections, tuple) else None
    if compiled is not None:
        numbers = pointer(rates), *decays, *corrections
        compiled(*x.shape, *numbers, stride(gradient), pointer(gradient), stride(x), pointer(x), *map(pointer, states))
        mark_written(x, *states)
        return
    column = rates[:, None]
    if x.device.type != "cpu":
        # Who rests is known to the device alone.
        new = [t.clone() for t in (x, *states)]
        _step(column, corrections, decays, gradient, *new)
        for old, stepped in zip((x, *states), new, strict=True):
            old.copy_(torch.where(column >= 0, stepped, old))
        return
    for k in (rates >= 0).nonzero().flatten().tolist():
        for span in column_chunks(x.shape[1], x.device):
            _step(column[k], corrections, decays, *(t[k, span] for t in (gradient, x, *states)))


def _step(
    rates: Tensor,
    corrections: BiasCorrections,
    decays: Decays,
    gradient: Tensor,
    x: Tensor,
    mean: Tensor,
    square: Tensor,
) -> None:
    """The same stated in torch, with one temporary."""
    first, new_first, second, new_second, small = decays
    mean.mul_(first).add_(gradient, alpha=new_first)
    square.mul_(second).addcmul_(gradient, gradient, value=new_second)
    update = square.sqrt().mul_(corrections[1] ** -0.5).add_(small)
    x.sub_(torch.div(mean, update, out=update).mul_(rates / corrections[0]))
