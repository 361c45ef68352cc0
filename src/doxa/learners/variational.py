"""Bayes by Backprop, with any noise and any prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa.batch_norm import averaged
from doxa.contracts import Batch, Estimate, Now, Posterior, Prior, Problem, Schedule, Training
from doxa.errors import BadInput, whole
from doxa.flat import (
    FAR,
    Drawn,
    Moments,
    Pace,
    Pull,
    Pulls,
    Slopes,
    Turn,
    adam,
    collect,
    descend,
    draw,
    fill_gradients,
    fill_scale,
    makes_again,
    mixture_slope,
)
from doxa.kl_weights import uniform
from doxa.layout import as_rows, not_finite, part, settle
from doxa.learners.passes import Passes
from doxa.noise import Leaves, Noise, shared
from doxa.noise.leaves import PRIOR, ROWS, SAMPLE, WEIGHTS, Piece, noise_of, sites_of
from doxa.philox import Stream, fill_normals
from doxa.posteriors import MeanField, mean_field
from doxa.posteriors.divergence import CLOSED, kl, pulls_of
from doxa.posteriors.mean_field import gather, log_softplus, softplus, spread

# Every sample has its own part of a step's streams, whose numbers have 31 bits.
MOST = (1 << 31) // SAMPLE - 1


# Where so many weights are drawn, their noise is made a second time from its counters rather than kept: a tenth less
# memory, for a step of two threads that takes a sixth longer.
LONG = 1 << 25
WIDE = 1 << 22  # weights of several nets whose KLs are worked out in one pass


def side_by_side(problem: Problem) -> bool:
    """Whether all draws of a step run as one program: on a GPU, which a batch alone does not fill."""
    return problem.uses.vectorises and problem.start.is_cuda


@dataclass(frozen=True)
class Variational:
    """The posterior nearest to the true one, by stochastic gradients of the free energy.

    min F/N = −(1/N) Σᵢ E_q log p(yᵢ | xᵢ, w) + (β/N) KL(q‖p)

    `kl_weight` is the schedule of β, 1 for the true free energy; `samples` draws a step are averaged, in pairs ±ε if
    `antithetic`. Gradients with respect to mean and scale are pulled back by hand from the leaves the net ran on, and
    the KL's are added in closed form: nothing is differentiated through the sampling.
    Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    prior: Prior
    noise: Noise = shared
    samples: int = 1
    antithetic: bool = False
    posterior: mean_field = field(default_factory=mean_field)
    kl_weight: Schedule = field(default_factory=uniform)

    nets = 1

    def __post_init__(self) -> None:
        whole("samples", self.samples)
        if self.samples > MOST:
            raise BadInput(f"samples must be at most {MOST:,} a step, got {self.samples:,}")
        if isinstance(self.prior, type) or not hasattr(self.prior, "grad_log_prob"):
            raise BadInput(f"prior must be one of doxa.priors, e.g. doxa.priors.gaussian(1.0); got {self.prior!r}")
        if not isinstance(self.noise, Noise):
            raise BadInput(f"noise must be one of doxa.noise, e.g. doxa.noise.local; got {self.noise!r}")
        if isinstance(self.kl_weight, type) or not callable(self.kl_weight):
            raise BadInput(
                f"kl_weight must be one of doxa.kl_weights, e.g. doxa.kl_weights.tempered(0.1); got {self.kl_weight!r}"
            )
        if self.antithetic and self.samples % 2:
            raise BadInput(f"antithetic draws come in pairs: samples must be even, got {self.samples}")

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program."""
        return Variational, self.noise, self.samples, self.antithetic, self.posterior.per

    def start(self, problem: Problem, fleet: Sequence[Variational]) -> Training:
        return VariationalTraining(fleet, problem)


class VariationalTraining:
    """Mean-field Gaussians at work: rows of means and rhos, gradients by hand, no autograd through either."""

    def __init__(self, fleet: Sequence[Variational], problem: Problem) -> None:
        self.learner, self.problem = fleet[0], problem.light()
        self.nets = self.members = len(fleet)
        layout = problem.layout
        self.given = [id(own.prior) for own in fleet]
        self.priors = [settle(own.prior, layout, problem.start[0]) for own in fleet]
        starts = [own.posterior.start(layout, problem.start[k], problem.seeds[k]) for k, own in enumerate(fleet)]
        self.groups = starts[0].groups
        self.mean = as_rows([s.mean for s in starts]).requires_grad_()
        self.rho = as_rows([s.rho for s in starts]).requires_grad_()
        self.parameters: Sequence[Tensor] = [self.mean, self.rho]
        # One scale a group is spread out over its weights; one a weight is made of rho wherever it is needed.
        wide = self.mean.detach()[:, : layout.random]
        self.scale = None if self.groups is None else torch.empty_like(wide, memory_format=torch.contiguous_format)
        self.at_once = self.learner.samples if side_by_side(problem) else 1
        together = problem.together or self.at_once > 1
        self.leaves = Leaves(
            layout,
            problem.uses,
            self.learner.noise,
            self.mean.detach(),
            self.rho.detach() if self.groups is None else None,
            self.scale,
            together,
            self.at_once,
            keep_epsilon=self.at_once > 1 or wide.numel() < LONG or not makes_again(self.mean.detach()),
        )
        ruled = self.leaves.ruled
        sites = partial(sites_of, problem.uses) if ruled else None
        self.passes = Passes(
            self.problem, self.leaves.first, self.leaves.second, sites, self.learner.noise.rule, together
        )
        self.closed = CLOSED.get(type(self.priors[0]))
        pulls = pulls_of(self.priors, layout.random, self.mean.detach())
        one_pass = self.at_once == self.learner.samples
        # A mixture's slope is taken at the draw that the net ran on, which local noise does not have.
        known = pulls.kind is not Pull.MIXTURE or (not ruled and one_pass and self.groups is None)
        self.pulls = pulls if known else Pulls()
        self.mixtures = pulls.about if pulls.kind is Pull.MIXTURE else None
        self.direct = one_pass and self.groups is None and self.pulls.kind is not Pull.NOWHERE
        if not self.direct:
            self.by_mean, self.by_scale = torch.zeros_like(wide), torch.zeros_like(wide)
        self.tail: Tensor | None = None  # what several samples add up to, by the point estimates
        self._buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.noise = noise_of(layout, problem.uses, self.learner.noise)

    def step(self, batch: Batch, now: Now) -> Tensor:
        if self.groups is not None:
            self._spread_scale()
        samples, per_pass = self.learner.samples, self.at_once
        total, seen = torch.zeros_like(now.weights), []
        for first in range(0, samples, per_pass):
            draws = [self._draw(now, s) for s in range(first, first + per_pass)]
            for number, (stream, sign) in enumerate(draws):
                self.leaves.draw(stream.other(stream.number + WEIGHTS), sign, number)
            rows = [(stream.other(stream.number + ROWS), sign) for stream, sign in draws]
            buffers = self._buffers if samples == 1 else {k: _repeated(b, per_pass) for k, b in self._buffers.items()}
            losses = self.passes(batch, buffers, rows, 1 / samples)
            total = total + losses.view(per_pass, self.nets).sum(0)
            seen += [{k: b[d * self.nets : (d + 1) * self.nets] for k, b in buffers.items()} for d in range(per_pass)]
            if not self.direct:
                for number, (stream, sign) in enumerate(draws):
                    self._collect(now, stream, sign, number, first=first == number == 0)
        if samples > 1:
            for name, value in averaged(seen).items():
                self._buffers[name].copy_(value)
        return total

    def _draw(self, now: Now, sample: int) -> tuple[Stream, float]:
        """The streams and the sign of a sample: those of a pair differ in the sign alone."""
        paired = self.learner.antithetic
        return now.stream.other(SAMPLE * (sample // 2 if paired else sample)), -1.0 if paired and sample % 2 else 1.0

    @torch.no_grad()
    def _spread_scale(self) -> None:
        assert self.scale is not None
        rho = self.rho.detach()
        self.scale.copy_(spread(fill_scale(torch.empty_like(rho), rho), self.groups))

    @torch.no_grad()
    def _collect(self, now: Now, stream: Stream, sign: float, number: int, first: bool) -> None:
        """Add one sample's gradients to those by mean and scale, and −log p's at its draw without a closed KL."""
        own = slice(number * self.nets, (number + 1) * self.nets)
        for whole_piece in self.leaves.pieces:
            piece = whole_piece.part(own) if self.at_once > 1 else whole_piece
            by_mean, by_scale = self.by_mean[:, piece.span], self.by_scale[:, piece.span]
            gradient, given = (rows[own] for rows in whole_piece.gradients())
            weight, slope = now.weights[:, None] / self.learner.samples, None
            if self.pulls.kind is Pull.NOWHERE and self.closed is None and piece.ruled:
                scale = self._scale(piece)
                epsilon = torch.empty_like(scale)
                fill_normals(epsilon, stream.other(stream.number + PRIOR), piece.span.start, sign)
                slope = self._log_slopes(piece, torch.addcmul(piece.mean, scale, epsilon)).mul_(weight)
                gradient = gradient - slope
                slope.mul_(epsilon)
            elif self.pulls.kind is Pull.NOWHERE and self.closed is None:
                # The net ran on this very draw: one gradient serves both.
                gradient = given = gradient - weight * self._log_slopes(piece, piece.flat)
            turn = self.learner.noise.turn if piece.ruled else Turn.TIMES_EPSILON
            rows = gradient, given, piece.epsilon, piece.rho, piece.scale, turn, by_mean, by_scale
            collect(*rows, add=not first, drawn=self._drawn(piece, stream, sign))
            if slope is not None:
                by_scale -= slope
        if self.leaves.tail and number == 0:  # all draws of the pass together
            tail = self.leaves.tail_gradient()
            self.tail = tail if first or self.tail is None else self.tail + tail

    def _drawn(self, piece: Piece, stream: Stream, sign: float) -> Drawn | None:
        """Where a piece's ε came from, if it was not kept."""
        again = Drawn(stream.other(stream.number + WEIGHTS), piece.span.start, sign)
        return again if piece.epsilon is None else None

    def _scale(self, piece: Piece) -> Tensor:
        if piece.rho is None:
            assert piece.scale is not None
            return piece.scale
        return fill_scale(torch.empty_like(piece.rho, memory_format=torch.contiguous_format), piece.rho)

    def _log_slopes(self, piece: Piece, w: Tensor) -> Tensor:
        """d log p/dw of each net's prior at its weights [K, n]."""
        if self.mixtures is not None and w.is_cuda:  # all of them at once; a CPU has a kernel for each
            return mixture_slope(w, *self.mixtures.split(1, dim=1))
        return torch.stack([part(own, piece.span).grad_log_prob(row) for own, row in zip(self.priors, w, strict=True)])

    @torch.no_grad()
    def _slopes(self, now: Now) -> list[tuple[slice, Slopes]]:
        """What the gradients by mean and rho are made of, piece by piece, where each weight has a scale of its own."""
        found = []
        for piece in self.leaves.pieces:
            assert piece.rho is not None
            turn = self.learner.noise.turn if piece.ruled else Turn.TIMES_EPSILON
            if self.direct:
                gradient, given = piece.gradients()
            else:
                turn, gradient, given = Turn.GIVEN, self.by_mean[:, piece.span], self.by_scale[:, piece.span]
            pulls = self.pulls.part(piece.span)
            found.append(
                (
                    piece.span,
                    Slopes(
                        piece.mean,
                        piece.rho,
                        gradient,
                        given,
                        piece.epsilon,
                        turn,
                        now.weights,
                        pulls,
                        self.at_once if self.direct else 1,
                        self._drawn(piece, *self._draw(now, 0)),
                    ),
                )
            )
        return found

    @torch.no_grad()
    def _add_closed(self, now: Now) -> None:
        """The slopes of a closed KL that no kernel knows."""
        if self.closed is None or self.pulls.kind is not Pull.NOWHERE:
            return
        for piece in self.leaves.pieces:
            scale = self._scale(piece)
            for k, own in enumerate(self.priors):
                rows = piece.mean[k], scale[k], now.weights[k]
                self.closed.add_slopes(
                    part(own, piece.span), *rows, self.by_mean[k, piece.span], self.by_scale[k, piece.span]
                )

    @torch.no_grad()
    def _grouped(self, now: Now) -> tuple[Tensor, Tensor]:
        """The gradients by mean [K, R] and by rho [K, G], one rho a group."""
        assert self.scale is not None
        weight = now.weights[:, None]
        random = self.problem.layout.random
        if self.pulls.kind is not Pull.NOWHERE:
            centre, precision = self.pulls.line()
            self.by_mean += weight * precision * (self.mean.detach()[:, :random] - centre)
            self.by_scale += weight * precision * self.scale
        self.by_scale -= weight / self.scale
        by_rho = torch.stack([gather(row, self.groups) for row in self.by_scale])
        return self.by_mean, by_rho * self.rho.detach().sigmoid()

    def _tail(self) -> Tensor | None:
        if not self.leaves.tail:
            return None
        return self.leaves.tail_gradient() if self.direct else self.tail

    @torch.no_grad()
    def fill_gradients(self, now: Now) -> None:
        for p in self.parameters:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        assert self.mean.grad is not None
        assert self.rho.grad is not None
        self._add_closed(now)
        random, tail = self.problem.layout.random, self._tail()
        if self.groups is not None:
            by_mean, by_rho = self._grouped(now)
            self.mean.grad[:, :random] = by_mean
            self.rho.grad.copy_(by_rho)
        else:
            for span, slopes in self._slopes(now):
                fill_gradients(slopes, self.mean.grad[:, span], self.rho.grad[:, span])
        if tail is not None:
            self.mean.grad[:, random:] = tail

    @torch.no_grad()
    def descend(self, now: Now, pace: Pace, moments: Sequence[Moments]) -> None:
        of_mean, of_rho = moments
        self._add_closed(now)
        random, tail = self.problem.layout.random, self._tail()
        mean, rho = self.mean.detach(), self.rho.detach()
        if self.groups is not None:
            by_mean, by_rho = self._grouped(now)
            adam(mean[:, :random], by_mean, pace, of_mean.part(slice(0, random)))
            adam(rho, by_rho, pace, of_rho)
        else:
            for span, slopes in self._slopes(now):
                descend(slopes, pace, of_mean.part(span), of_rho.part(span))
        if tail is not None:
            adam(mean[:, random:], tail, pace, of_mean.part(slice(random, None)))

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        if self.groups is not None:
            self._spread_scale()
        w, random = self.mean.detach().clone(), self.problem.layout.random
        rho = self.rho.detach() if self.groups is None else None
        draw(w[:, :random], self.mean.detach()[:, :random], self.scale, None, rho, stream)
        return w

    def posterior(self, member: int) -> Posterior:
        return MeanField(self.mean.detach()[member].clone(), self.rho.detach()[member].clone(), self.groups)

    def complexity(self, member: int) -> Estimate:
        return kl(self.posterior(member), self.priors[member])

    def complexities(self, members: Sequence[int]) -> list[Estimate]:
        if self.closed is None:
            return [self.complexity(k) for k in members]
        alike: dict[int, list[int]] = {}  # by their prior
        for k in members:
            alike.setdefault(self.given[k], []).append(k)
        at_once = max(1, WIDE // self.problem.layout.random)
        found: dict[int, float] = {}
        for group in alike.values():
            for few in (group[i : i + at_once] for i in range(0, len(group), at_once)):
                found |= dict(zip(few, self._closed(few), strict=True))
        return [Estimate(found[k]) for k in members]

    @torch.no_grad()
    def _closed(self, members: Sequence[int]) -> list[float]:
        """The KLs of members with one prior, in one pass."""
        assert self.closed is not None
        rows = torch.tensor(members, device=self.mean.device)
        random = self.problem.layout.random
        scale, log_scale = (spread(f(self.rho.detach()[rows]), self.groups) for f in (softplus, log_softplus))
        values = self.closed.value(self.priors[members[0]], self.mean.detach()[rows, :random], scale, log_scale)
        return values.sum(1, dtype=torch.float64).tolist()

    def trouble(self, member: int) -> str | None:
        rho = self.rho.detach()[member]
        if not bool((rho.abs() < FAR).all()):
            return f"the scales ran away: rho reaches {float(rho.abs().max()):.3g}"
        return not_finite(self.problem.layout, self.mean.detach()[member])

    def told(self, member: int) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "rho": self.rho, **{f"buffers.{k}": b for k, b in self._buffers.items()}}

    def buffers(self, member: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[member].clone() for k, b in self._buffers.items()},)


def _repeated(buffer: Tensor, times: int) -> Tensor:
    """A copy for each of several draws [S · K, ·]."""
    return buffer.repeat(times, *[1] * (buffer.dim() - 1))
