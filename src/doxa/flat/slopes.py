"""From the gradients that a pass leaves behind to those by mean and rho, and the step along them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from doxa.flat.adam import Corrections, Decays, Moments, adam, in_memory
from doxa.flat.draws import FAR, NOT_DRAWN, Drawn, fill_scale
from doxa.flat.prior import Pull, Pulls, mixture_slope
from doxa.flat.rows import alike, grid, parts, room
from doxa.kernels import at, cuda, kernel, stride, written


class Turn(IntEnum):
    """How the gradient by the scale comes from the one that is given."""

    GIVEN = 0
    TIMES_EPSILON = 1
    TIMES_TWICE_SCALE = 2


@dataclass(frozen=True)
class Slopes:
    """All that the gradients by mean and rho are made of, rows [K, n] of each.

    `gradient` is the one by the first leaf, `given` stands for the one by the scale, as `turn` says; `weights` [K] are
    those of the KL, whose own slopes are added. An ε that was not kept is made again as it was `drawn`.
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
    drawn: Drawn | None = None

    def part(self, span: slice) -> Slopes:
        """Those of some columns."""
        epsilon = None if self.epsilon is None else self.epsilon[:, span]
        drawn = None if self.drawn is None else self.drawn.part(span)
        mean, rho, gradient, given = (t[:, span] for t in (self.mean, self.rho, self.gradient, self.given))
        pulls = self.pulls.part(span)
        return Slopes(mean, rho, gradient, given, epsilon, self.turn, self.weights, pulls, self.draws, drawn)

    def with_epsilon(self) -> Slopes:
        """The same with the ε that was not kept."""
        needed = self.turn is Turn.TIMES_EPSILON and self.epsilon is None and self.drawn is not None
        if not needed:
            return self
        assert self.drawn is not None
        return replace(self, epsilon=self.drawn.again(self.rho))

    def fits(self, of_mean: Moments | None = None, of_rho: Moments | None = None) -> bool:
        """Whether what a kernel walks through with one stride has one."""
        first = () if of_mean is None else (of_mean.mean, of_mean.square)
        second = () if of_rho is None else (of_rho.mean, of_rho.square)
        centres = self.pulls.centres, self.pulls.precisions
        return alike(self.mean, *first) and alike(self.rho, self.epsilon, *second) and alike(*centres)

    def fits_c(self) -> bool:
        """Whether the C kernels, which know one draw and steps by their numbers, can do it."""
        return self.draws == 1 and (self.drawn is None or not isinstance(self.drawn.stream.step, Tensor))

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
        on_gpu[grid(self.mean)](size, self.weights, *prior, *inputs, *places, self.mean, self.rho, *rest, *flags)

    def arguments(self) -> tuple[Any, ...]:
        """As the C kernels take them."""
        p = self.pulls
        prior = at(p.about), stride(p.precisions), at(p.centres), at(p.precisions)
        inputs = stride(self.gradient), at(self.gradient), stride(self.given), at(self.given)
        drawn = NOT_DRAWN if self.drawn is None else self.drawn.arguments()
        places = stride(self.mean), stride(self.rho), *drawn, at(self.epsilon), at(self.mean), at(self.rho)
        return (*self.mean.shape, self.turn, p.kind, at(self.weights), *prior, *inputs, *places)


def descend(
    slopes: Slopes, mean_moments: Moments, rho_moments: Moments, rates: Tensor, left: Corrections, decays: Decays
) -> None:
    """One step of Adam on mean and rho. Kingma & Ba (2015), Adam: a method for stochastic optimization."""
    states = mean_moments.mean, mean_moments.square, rho_moments.mean, rho_moments.square
    fits, vectors = slopes.fits(mean_moments, rho_moments), (*slopes.vectors(), *states)
    on_gpu = cuda.kernel("descend", *vectors) if fits else None
    if on_gpu is not None:
        rest = rates, in_memory(left, slopes.mean), *decays, *states
        slopes.with_epsilon().launch(on_gpu, rest, step=True)
        return
    compiled = kernel("doxa_descend", *vectors) if fits and slopes.fits_c() and isinstance(left, tuple) else None
    if compiled is not None:
        compiled(*slopes.arguments(), at(rates), *decays, *left, *map(at, states))
        written(slopes.mean, slopes.rho, *states)
        return
    for span in parts(slopes.mean.shape[1], slopes.mean.device):
        part = slopes.part(span)
        by_mean, by_rho = worked_out(part)
        adam(part.mean, by_mean, mean_moments.part(span), rates, left, decays)
        adam(part.rho, by_rho, rho_moments.part(span), rates, left, decays)


def fill_gradients(slopes: Slopes, by_mean: Tensor, by_rho: Tensor) -> None:
    """The gradients by mean and rho, for optimisers of other kinds."""
    fits = slopes.fits() and alike(slopes.mean, by_mean) and alike(slopes.rho, by_rho)
    on_gpu = cuda.kernel("descend", *slopes.vectors(), by_mean, by_rho) if fits else None
    if on_gpu is not None:
        idle = slopes.weights
        rest = idle, idle, 0.0, 0.0, 0.0, 0.0, 0.0, by_mean, by_mean, by_rho, by_rho
        slopes.with_epsilon().launch(on_gpu, rest, step=False)
        return
    compiled = kernel("doxa_slopes", *slopes.vectors(), by_mean, by_rho) if fits and slopes.fits_c() else None
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
    drawn: Drawn | None = None,
) -> None:
    """Write one draw's gradients to those by mean and scale, or add them there; the scale is given or made of rho."""
    twice = turn is Turn.TIMES_TWICE_SCALE
    vectors = gradient, given, epsilon, rho, by_mean, by_scale
    ready = alike(by_mean, by_scale) and alike(epsilon, rho) and (rho is not None or not twice)
    known = drawn is None or not isinstance(drawn.stream.step, Tensor)
    compiled = kernel("doxa_collect", *vectors) if ready and known else None
    if compiled is not None:
        rows = stride(gradient), at(gradient), stride(given), at(given)
        numbers = NOT_DRAWN if drawn is None else drawn.arguments()
        places = *numbers, stride(rho if twice else epsilon), at(epsilon), at(rho)
        compiled(*gradient.shape, add, turn, *rows, *places, stride(by_mean), at(by_mean), at(by_scale))
        written(by_mean, by_scale)
        return
    if not add:
        by_mean.zero_()
        by_scale.zero_()
    for span in parts(gradient.shape[1], gradient.device):
        if twice and rho is not None:
            factor = fill_scale(room(rho[:, span]), rho[:, span])
        elif twice:
            assert scale is not None
            factor = scale[:, span]
        elif epsilon is not None:
            factor = epsilon[:, span]
        else:
            assert drawn is not None
            factor = drawn.part(span).again(given[:, span])
        by_mean[:, span] += gradient[:, span]
        by_scale[:, span].addcmul_(given[:, span], factor, value=2 if twice else 1)


def worked_out(s: Slopes) -> tuple[Tensor, Tensor]:
    """The gradients by mean and rho, stated in torch."""
    s = s.with_epsilon()
    scale = fill_scale(room(s.rho), s.rho)
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
            by_scale.addcmul_(given, epsilon)
        elif s.turn is Turn.TIMES_TWICE_SCALE:
            by_scale.addcmul_(given, scale, value=2)
        else:
            by_scale += given
    if s.pulls.kind in (Pull.LINE, Pull.LINES):
        middle, precision = s.pulls.line()
        pull = weight * precision
        by_mean.addcmul_(s.mean - middle, pull)
        by_scale.addcmul_(scale, pull)
    by_scale.addcdiv_(weight, scale, value=-1)
    return by_mean, by_scale.mul_(torch.clamp(s.rho, -FAR, FAR, out=scale).sigmoid_())
