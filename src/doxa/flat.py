"""Passes over flat vectors: what a training step does besides running the net.

All work on rows [K, n], one for each member of a fleet. Each pass is stated in torch, and done at once by a compiled
kernel where there is one for the device: in C for the CPU's memory, in Triton for a GPU's. The forms agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from doxa.native import at, cuda, kernel, stride, written
from doxa.philox import Stream, fill_normals

# No posterior of use has a |rho| this large: its scale would be 80, or 1e-35.
FAR = 80.0
# On a CPU without kernels, long vectors are worked through in parts, so that temporaries stay small.
PART = 1 << 19


class Turn(IntEnum):
    """How the gradient by the scale comes from the one that is given."""

    GIVEN = 0
    TIMES_EPSILON = 1
    TIMES_TWICE_SCALE = 2


class Pull(IntEnum):
    """Where the slopes of −log p come from, while a step is taken."""

    NOWHERE = 0
    LINE = 1  # one centre and precision a member
    LINES = 2  # one a weight
    MIXTURE = 3  # of two Gaussians, at the draw


@dataclass(frozen=True)
class Pulls:
    """The slopes of −log p of every member's prior, as the kernels take them."""

    kind: Pull = Pull.NOWHERE
    about: Tensor | None = None  # [K, 4]: centre and precision; of a mixture centre, two precisions, log-odds
    centres: Tensor | None = None  # [K, n]
    precisions: Tensor | None = None  # [K, n]

    def part(self, span: slice) -> Pulls:
        """Those of a stretch of the weights."""
        cut = [None if t is None else t[:, span] for t in (self.centres, self.precisions)]
        return Pulls(self.kind, self.about, *cut)

    def line(self) -> tuple[Tensor | float, Tensor]:
        """Centres and precisions, as columns [K, 1] or rows [K, n]."""
        if self.kind is Pull.LINE:
            assert self.about is not None
            return self.about[:, :1], self.about[:, 1:2]
        assert self.precisions is not None
        return 0.0 if self.centres is None else self.centres, self.precisions


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

    def left(self, like: Tensor) -> Tensor:
        """Both in a device's memory [2]."""
        return self.lefts if isinstance(self.lefts, Tensor) else like.new_tensor(self.lefts)


def alike(*rows: Tensor | None) -> bool:
    """Whether all have one distance from row to row."""
    return len({stride(r) for r in rows if r is not None and len(r) > 1}) < 2


def _grid(rows: Tensor) -> tuple[int, int]:
    return -(-rows.shape[1] // cuda.WIDE), len(rows)


def parts(n: int, device: torch.device) -> Iterator[slice]:
    """The columns in stretches of at most PART on the CPU, all at once elsewhere."""
    size = PART if device.type == "cpu" else max(n, 1)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def fill_scale(scale: Tensor, rho: Tensor, squared: bool = False) -> Tensor:
    """scale = softplus(rho), or its square; rho is held within ±FAR, so that 1/scale is finite too."""
    on_gpu = cuda.kernel("fill_scale", scale, rho)
    if on_gpu is not None:
        on_gpu[_grid(rho)](rho.shape[1], stride(rho), stride(scale), rho, scale, squared, cuda.WIDE)
        return scale
    compiled = kernel("doxa_fill_scale", scale, rho)
    if compiled is None:
        torch.clamp(rho, -FAR, FAR, out=scale).exp_().log1p_()
        return scale.square_() if squared else scale
    compiled(*rho.shape, squared, stride(rho), stride(scale), at(rho), at(scale))
    written(scale)
    return scale


def draw(
    w: Tensor,
    mean: Tensor | None,
    scale: Tensor | None,
    epsilon: Tensor | None,
    rho: Tensor | None,
    stream: Stream,
    start: int = 0,
    sign: float = 1.0,
) -> None:
    """epsilon = sign · normals, w = mean + scale · epsilon, with scale = softplus(rho) first where rho is given.

    Without a mean it is 0. Scale and epsilon are kept where there is room for them; without rho the scale is read.
    """
    vectors = w, mean, scale, epsilon, rho
    even = alike(scale, epsilon, rho)
    on_gpu = cuda.kernel("draw", *vectors) if even else None
    if on_gpu is not None:
        there = [v is not None for v in (mean, rho, scale, epsilon)]
        filled = [w if v is None else v for v in (mean, rho, scale, epsilon)]
        strides = stride(mean), stride(rho if rho is not None else scale), stride(w)
        grid = cuda.groups(start, w.shape[1]), len(w)
        numbers = stream.seeds, cuda.step_of(stream.step, w.device), stream.number, start, w.shape[1], sign
        on_gpu[grid](*numbers, *strides, *filled, w, *there)
        return
    compiled = kernel("doxa_draw", *vectors) if even and not isinstance(stream.step, Tensor) else None
    if compiled is not None:
        strides = stride(mean), stride(rho if rho is not None else scale), stride(w)
        compiled(
            len(w),
            at(stream.seeds),
            stream.high,
            start,
            w.shape[1],
            sign,
            *strides,
            at(mean),
            at(rho),
            at(scale),
            at(epsilon),
            at(w),
        )
        written(*(v for v in (w, epsilon, scale if rho is not None else None) if v is not None))
        return
    for span in parts(w.shape[1], w.device):
        noise = torch.empty_like(w[:, span], memory_format=torch.contiguous_format)
        fill_normals(noise, stream, start + span.start, sign)
        if rho is not None:
            room = torch.empty_like(noise) if scale is None else scale[:, span]
            spread = fill_scale(room, rho[:, span])
        else:
            assert scale is not None
            spread = scale[:, span]
        if epsilon is not None:
            epsilon[:, span] = noise
        w[:, span] = noise.mul_(spread) if mean is None else torch.addcmul(mean[:, span], spread, noise)


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


@dataclass(frozen=True)
class Slopes:
    """All that the gradients by mean and rho are made of, rows [K, n] of each.

    `gradient` is the one by the first leaf, `given` stands for the one by the scale, as `turn` says; `weights` [K] are
    those of the KL, whose own slopes are added.
    """

    mean: Tensor
    rho: Tensor
    gradient: Tensor
    given: Tensor
    epsilon: Tensor | None
    turn: Turn
    weights: Tensor
    pulls: Pulls
    draws: int = 1  # gradient, given and epsilon have a row for each draw of each net, [S · K, n]; their sum counts

    def part(self, span: slice) -> Slopes:
        """Those of some columns."""
        epsilon = None if self.epsilon is None else self.epsilon[:, span]
        mean, rho, gradient, given = (t[:, span] for t in (self.mean, self.rho, self.gradient, self.given))
        return Slopes(mean, rho, gradient, given, epsilon, self.turn, self.weights, self.pulls.part(span), self.draws)

    def fits(self, of_mean: Moments | None = None, of_rho: Moments | None = None) -> bool:
        """Whether what a kernel walks through with one stride has one."""
        first = () if of_mean is None else (of_mean.mean, of_mean.square)
        second = () if of_rho is None else (of_rho.mean, of_rho.square)
        centres = self.pulls.centres, self.pulls.precisions
        return alike(self.mean, *first) and alike(self.rho, self.epsilon, *second) and alike(*centres)

    def vectors(self) -> tuple[Tensor | None, ...]:
        return (self.mean, self.rho, self.gradient, self.given, self.epsilon, self.pulls.centres, self.pulls.precisions)

    def launch(self, on_gpu: Any, rest: tuple[Any, ...], step: bool) -> None:
        """Run the Triton kernel; what is not there is stood in for by what is."""
        p, idle = self.pulls, self.mean
        about = self.weights if p.about is None else p.about
        prior = about, stride(p.precisions), *(idle if t is None else t for t in (p.centres, p.precisions))
        inputs = stride(self.gradient), self.gradient, stride(self.given), self.given
        places = stride(self.mean), stride(self.rho), idle if self.epsilon is None else self.epsilon
        flags = int(self.turn), int(p.kind), p.centres is not None, step, self.draws, len(self.mean), cuda.WIDE
        size = self.mean.shape[1]
        on_gpu[_grid(self.mean)](size, self.weights, *prior, *inputs, *places, self.mean, self.rho, *rest, *flags)

    def arguments(self) -> tuple[int | None, ...]:
        """As the C kernels take them."""
        p = self.pulls
        prior = at(p.about), stride(p.precisions), at(p.centres), at(p.precisions)
        inputs = stride(self.gradient), at(self.gradient), stride(self.given), at(self.given)
        places = stride(self.mean), stride(self.rho), at(self.epsilon), at(self.mean), at(self.rho)
        return (*self.mean.shape, self.turn, p.kind, at(self.weights), *prior, *inputs, *places)


def descend(slopes: Slopes, pace: Pace, mean_moments: Moments, rho_moments: Moments) -> None:
    """One step of Adam on mean and rho. Kingma & Ba (2015), Adam: a method for stochastic optimization."""
    states = mean_moments.mean, mean_moments.square, rho_moments.mean, rho_moments.square
    fits, vectors = slopes.fits(mean_moments, rho_moments), (*slopes.vectors(), *states)
    on_gpu = cuda.kernel("descend", *vectors) if fits else None
    if on_gpu is not None:
        decays = pace.first, pace.second, pace.small
        slopes.launch(on_gpu, (pace.rates, pace.left(slopes.mean), *decays, *states), step=True)
        return
    here = fits and slopes.draws == 1 and isinstance(pace.lefts, tuple)
    compiled = kernel("doxa_descend", *vectors) if here else None
    if compiled is not None:
        assert isinstance(pace.lefts, tuple)
        compiled(
            *slopes.arguments(), at(pace.rates), pace.first, pace.second, pace.small, *pace.lefts, *map(at, states)
        )
        written(slopes.mean, slopes.rho, *states)
        return
    for span in parts(slopes.mean.shape[1], slopes.mean.device):
        part = slopes.part(span)
        by_mean, by_rho = worked_out(part)
        adam(part.mean, by_mean, pace, mean_moments.part(span))
        adam(part.rho, by_rho, pace, rho_moments.part(span))


def fill_gradients(slopes: Slopes, by_mean: Tensor, by_rho: Tensor) -> None:
    """The gradients by mean and rho, for optimisers of other kinds."""
    fits = slopes.fits() and alike(slopes.mean, by_mean) and alike(slopes.rho, by_rho)
    on_gpu = cuda.kernel("descend", *slopes.vectors(), by_mean, by_rho) if fits else None
    if on_gpu is not None:
        idle = slopes.weights
        slopes.launch(on_gpu, (idle, idle, 0.0, 0.0, 0.0, by_mean, by_mean, by_rho, by_rho), step=False)
        return
    compiled = kernel("doxa_slopes", *slopes.vectors(), by_mean, by_rho) if fits and slopes.draws == 1 else None
    if compiled is not None:
        compiled(*slopes.arguments(), at(by_mean), at(by_rho))
        written(by_mean, by_rho)
        return
    for span in parts(slopes.mean.shape[1], slopes.mean.device):
        by_mean[:, span], by_rho[:, span] = worked_out(slopes.part(span))


def collect(
    gradient: Tensor,
    given: Tensor,
    epsilon: Tensor | None,
    rho: Tensor | None,
    scale: Tensor | None,
    turn: Turn,
    by_mean: Tensor,
    by_scale: Tensor,
    add: bool,
) -> None:
    """Write one draw's gradients to those by mean and scale, or add them there; the scale is given or made of rho."""
    twice = turn is Turn.TIMES_TWICE_SCALE
    vectors = gradient, given, epsilon, rho, by_mean, by_scale
    ready = alike(by_mean, by_scale) and alike(epsilon, rho) and (rho is not None or not twice)
    compiled = kernel("doxa_collect", *vectors) if ready else None
    if compiled is not None:
        rows = stride(gradient), at(gradient), stride(given), at(given)
        factor = stride(rho if twice else epsilon), at(epsilon), at(rho)
        compiled(*gradient.shape, add, turn, *rows, *factor, stride(by_mean), at(by_mean), at(by_scale))
        written(by_mean, by_scale)
        return
    if twice:
        if rho is not None:
            scale = fill_scale(torch.empty_like(rho, memory_format=torch.contiguous_format), rho)
        assert scale is not None
        pulled = given * scale * 2
    else:
        assert epsilon is not None
        pulled = given * epsilon
    if add:
        by_mean += gradient
        by_scale += pulled
    else:
        by_mean.copy_(gradient)
        by_scale.copy_(pulled)


def worked_out(s: Slopes) -> tuple[Tensor, Tensor]:
    """The gradients by mean and rho, stated in torch."""
    scale = fill_scale(torch.empty_like(s.rho, memory_format=torch.contiguous_format), s.rho)
    weight, nets = s.weights[:, None], len(s.mean)
    by_mean, by_scale = torch.zeros_like(scale), torch.zeros_like(scale)
    for d in range(s.draws):
        own = slice(d * nets, (d + 1) * nets)
        gradient, given = s.gradient[own], s.given[own]
        epsilon = None if s.epsilon is None else s.epsilon[own]
        if s.pulls.kind is Pull.MIXTURE:
            assert s.pulls.about is not None
            assert epsilon is not None
            about = (s.pulls.about[:, i : i + 1] for i in range(4))
            slope = mixture_slope(torch.addcmul(s.mean, scale, epsilon), *about)
            gradient = given = gradient - weight / s.draws * slope
        by_mean += gradient
        if s.turn is Turn.TIMES_EPSILON:
            assert epsilon is not None
            by_scale += given * epsilon
        else:
            by_scale += given * scale * 2 if s.turn is Turn.TIMES_TWICE_SCALE else given
    if s.pulls.kind in (Pull.LINE, Pull.LINES):
        middle, precision = s.pulls.line()
        by_mean += weight * precision * (s.mean - middle)
        by_scale += weight * precision * scale
    by_scale -= weight / scale
    return by_mean, by_scale.mul_(s.rho.clamp(-FAR, FAR).sigmoid())


def adam(x: Tensor, gradient: Tensor, pace: Pace, moments: Moments) -> None:
    """One step of Adam on the rows of x [K, n]."""
    states = moments.mean, moments.square
    decays, even = (pace.first, pace.second, pace.small), alike(x, *states)
    on_gpu = cuda.kernel("adam", x, gradient, *states) if even else None
    if on_gpu is not None:
        rows = stride(gradient), gradient, stride(x), x, *states
        on_gpu[_grid(x)](x.shape[1], *rows, pace.rates, pace.left(x), *decays, cuda.WIDE)
        return
    compiled = kernel("doxa_adam", x, gradient, *states) if even and isinstance(pace.lefts, tuple) else None
    if compiled is not None:
        numbers = at(pace.rates), *decays, *pace.lefts
        compiled(*x.shape, *numbers, stride(gradient), at(gradient), stride(x), at(x), *map(at, states))
        written(x, *states)
        return
    first, second = pace.first, pace.second
    left = pace.lefts
    awake = (pace.rates >= 0)[:, None]
    new_mean = moments.mean * first + gradient * (1 - first)
    new_square = moments.square * second + gradient.square() * (1 - second)
    root = new_square.sqrt() * left[1] ** -0.5 + pace.small
    stepped = x - (pace.rates[:, None] / left[0]) * new_mean / root
    for old, new in ((x, stepped), (moments.mean, new_mean), (moments.square, new_square)):
        old.copy_(torch.where(awake, new, old))


def mixture_slope(
    w: Tensor, centre: float | Tensor, wide: float | Tensor, narrow: float | Tensor, odds: float | Tensor
) -> Tensor:
    """d log p(w)/dw for a mixture of Gaussians of two precisions, the wide one exp(odds) times as likely at the centre.

    The share of the narrow one at w is a sigmoid of the log-ratio of the two: nothing overflows, and nothing cancels.
    """
    numbers = centre, wide, narrow, odds
    compiled: Callable[..., None] | None = None
    if not any(isinstance(v, Tensor) for v in numbers) and w.is_contiguous():
        compiled = kernel("doxa_mixture_slope", w)
    if compiled is not None:
        slope = torch.empty_like(w)
        compiled(w.numel(), *numbers, at(w), at(slope))
        return slope
    distance = w - centre
    idle = (distance.square().mul_(-0.5 * (narrow - wide)) - odds).sigmoid_()
    return distance.mul_(idle.mul_(narrow - wide).add_(wide)).neg_()
