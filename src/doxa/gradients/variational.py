"""The gradient of a mean-field Gaussian: by mean and rho, pulled back by hand from the leaves that the nets ran on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Batch, Estimate, Posterior, Prior, Problem
from doxa.engine.context import StepContext
from doxa.engine.contracts import SCALES, Beliefs, Parameter, Recipe, State
from doxa.engine.recipes import GaussianSlopes, GradientRows
from doxa.errors import BadInput
from doxa.flat import FAR, Drawn, Pull, Pulls, Slopes, Turn, collect, draw, fill_scale, makes_again, mixture_slope
from doxa.gradients.passes import Passes, why_eager
from doxa.noise import Leaves
from doxa.noise.leaves import PRIOR, ROWS, SAMPLE, WEIGHTS, Piece, noise_of, sites_of
from doxa.posteriors import MeanField
from doxa.posteriors.divergence import CLOSED, Closed, kl, pulls_of
from doxa.posteriors.mean_field import gather, log_softplus, softplus, spread
from doxa.random.philox import Stream, fill_normals
from doxa.weights.batch_norm import averaged
from doxa.weights.layout import as_rows, part, settle

# Where so many weights are drawn, their noise is made a second time from its counters rather than kept: a tenth less
# memory, for a step of two threads that takes a sixth longer.
LONG = 1 << 25
WIDE = 1 << 22  # weights of several nets whose KLs are worked out in one pass


def side_by_side(problem: Problem) -> bool:
    """Whether all draws of a step run as one program: on a GPU, which a batch alone does not fill."""
    return problem.uses.vectorises and problem.start.is_cuda


@dataclass(frozen=True, eq=False)
class MeanFieldBeliefs:
    """What means [K, P] and rhos [K, G] stand for: an independent Gaussian for every random weight."""

    mean: Tensor
    rho: Tensor
    groups: tuple[int, ...] | None
    random: int
    priors: Sequence[Prior]
    given: Sequence[int]  # which nets were given the same prior
    noise: dict[str, str]
    own: Mapping[str, Tensor]  # buffers [K, ·]

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        w, middle = self.mean.clone(), self.mean[:, : self.random]
        if self.groups is None:
            draw(w[:, : self.random], middle, None, None, self.rho, stream)
        else:
            draw(w[:, : self.random], middle, spread_scale(self.rho, self.groups), None, None, stream)
        return w

    def posterior(self, net: int) -> Posterior:
        return MeanField(self.mean[net].clone(), self.rho[net].clone(), self.groups)

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[net].clone() for k, b in self.own.items()},)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        closed = CLOSED.get(type(self.priors[0]))
        if closed is None:
            return [kl(self.posterior(k), self.priors[k]) for k in nets]
        alike: dict[int, list[int]] = {}  # by their prior
        for k in nets:
            alike.setdefault(self.given[k], []).append(k)
        at_once = max(1, WIDE // self.random)
        found: dict[int, float] = {}
        for group in alike.values():
            for few in (group[i : i + at_once] for i in range(0, len(group), at_once)):
                found |= dict(zip(few, self._closed(closed, few), strict=True))
        return [Estimate(found[k]) for k in nets]

    @torch.no_grad()
    def _closed(self, closed: Closed, nets: Sequence[int]) -> list[float]:
        """The KLs of nets with one prior, in one pass."""
        rows = torch.tensor(nets, device=self.mean.device)
        scale, log_scale = (spread(f(self.rho[rows]), self.groups) for f in (softplus, log_softplus))
        values = closed.value(self.priors[nets[0]], self.mean[rows, : self.random], scale, log_scale)
        return values.sum(1, dtype=torch.float64).tolist()


def spread_scale(rho: Tensor, groups: tuple[int, ...]) -> Tensor:
    """The scale of every weight [K, R], of one rho a group [K, G]."""
    return spread(fill_scale(torch.empty_like(rho), rho), groups)


class VariationalGradient:
    """Mean-field Gaussians: rows of means and rhos, gradients by hand, no autograd through either.

    ∇F/N by mean and rho, of −(1/B) Σᵢ E_q log p(yᵢ | xᵢ, w) + (β/N) KL(q‖p)

    Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    def __init__(self, fleet: Sequence[Any], problem: Problem) -> None:
        self.learner, self.problem = fleet[0], problem.light()
        self.nets = len(fleet)
        layout = problem.layout
        self.given = [id(own.prior) for own in fleet]
        self.priors = [settle(own.prior, layout, problem.start[0]) for own in fleet]
        starts = [own.posterior.start(layout, problem.start[k], problem.seeds[k]) for k, own in enumerate(fleet)]
        self.groups = starts[0].groups
        self.mean, self.rho = as_rows([s.mean for s in starts]), as_rows([s.rho for s in starts])
        self.parameters = [Parameter("mean", self.mean), Parameter("rho", self.rho, SCALES, FAR)]
        # One scale a group is spread out over its weights; one a weight is made of rho wherever it is needed.
        wide = self.mean[:, : layout.random]
        self.scale = None if self.groups is None else torch.empty_like(wide, memory_format=torch.contiguous_format)
        self.at_once = self.learner.samples if side_by_side(problem) else 1
        together = problem.together or self.at_once > 1
        self.leaves = Leaves(
            layout,
            problem.uses,
            self.learner.noise,
            self.mean,
            self.rho if self.groups is None else None,
            self.scale,
            together,
            self.at_once,
            keep_epsilon=self.at_once > 1 or wide.numel() < LONG or not makes_again(self.mean),
        )
        ruled = self.leaves.ruled
        sites = partial(sites_of, problem.uses) if ruled else None
        self.passes = Passes(
            self.problem, self.leaves.first, self.leaves.second, sites, self.learner.noise.rule, together
        )
        self.closed = CLOSED.get(type(self.priors[0]))
        pulls = pulls_of(self.priors, layout.random, self.mean)
        one_pass = self.at_once == self.learner.samples
        # A mixture's slope is taken at the draw that the net ran on, which local noise does not have.
        known = pulls.kind is not Pull.MIXTURE or (not ruled and one_pass and self.groups is None)
        self.pulls = pulls if known else Pulls()
        self.mixtures = pulls.about if pulls.kind is Pull.MIXTURE else None
        self.direct = one_pass and self.groups is None and self.pulls.kind is not Pull.NOWHERE
        if not self.direct:
            self.by_mean, self.by_scale = torch.zeros_like(wide), torch.zeros_like(wide)
        self.tail: Tensor | None = None  # what several samples add up to, by the point estimates
        self.buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.noise = noise_of(layout, problem.uses, self.learner.noise)
        self.eager = why_eager(problem)

    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        if self.groups is not None:
            self._spread_scale()
        samples, per_pass = self.learner.samples, self.at_once
        total, seen = torch.zeros_like(context.kl_weight), []
        for first in range(0, samples, per_pass):
            draws = [self._draw(context, s) for s in range(first, first + per_pass)]
            for number, (stream, sign) in enumerate(draws):
                self.leaves.draw(stream.other(stream.number + WEIGHTS), sign, number)
            rows = [(stream.other(stream.number + ROWS), sign) for stream, sign in draws]
            buffers = self.buffers if samples == 1 else {k: _repeated(b, per_pass) for k, b in self.buffers.items()}
            losses = self.passes(batch, buffers, rows, 1 / samples, context.compiled)
            total = total + losses.view(per_pass, self.nets).sum(0)
            seen += [{k: b[d * self.nets : (d + 1) * self.nets] for k, b in buffers.items()} for d in range(per_pass)]
            if not self.direct:
                for number, (stream, sign) in enumerate(draws):
                    self._collect(context, stream, sign, number, first=first == number == 0)
        if samples > 1:
            for name, value in averaged(seen).items():
                self.buffers[name].copy_(value)
        return total

    def _draw(self, context: StepContext, sample: int) -> tuple[Stream, float]:
        """The streams and the sign of a sample: those of a pair differ in the sign alone."""
        paired = self.learner.antithetic
        return context.stream.other(
            SAMPLE * (sample // 2 if paired else sample)
        ), -1.0 if paired and sample % 2 else 1.0

    @torch.no_grad()
    def _spread_scale(self) -> None:
        assert self.scale is not None
        assert self.groups is not None
        self.scale.copy_(spread_scale(self.rho, self.groups))

    @torch.no_grad()
    def _collect(self, context: StepContext, stream: Stream, sign: float, number: int, first: bool) -> None:
        """Add one sample's gradients to those by mean and scale, and −log p's at its draw without a closed KL."""
        own = slice(number * self.nets, (number + 1) * self.nets)
        for whole_piece in self.leaves.pieces:
            piece = whole_piece.part(own) if self.at_once > 1 else whole_piece
            by_mean, by_scale = self.by_mean[:, piece.span], self.by_scale[:, piece.span]
            gradient, given = (rows[own] for rows in whole_piece.gradients())
            weight, slope = context.kl_weight[:, None] / self.learner.samples, None
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
    def slopes(self, context: StepContext, prior: bool = True) -> list[Recipe]:
        if not prior:
            context = self._without_prior(context)
        self._add_closed(context)
        random = self.problem.layout.random
        if self.groups is None:
            found: list[Recipe] = [GaussianSlopes(p.span, self._slopes(p, context, prior)) for p in self.leaves.pieces]
        else:
            by_mean, by_rho = self._grouped(context, prior)
            span = slice(0, random)
            found = [
                GradientRows("mean", span, True, by_mean, self.mean[:, span]),
                GradientRows("rho", slice(0, self.rho.shape[1]), True, by_rho, self.rho),
            ]
        if self.leaves.tail:
            tail = self.leaves.tail_gradient() if self.direct else self.tail
            assert tail is not None
            span = slice(random, self.problem.layout.size)
            found.append(GradientRows("mean", span, False, tail, self.mean[:, span]))
        return found

    def _without_prior(self, context: StepContext) -> StepContext:
        if self.closed is None and self.pulls.kind is Pull.NOWHERE:
            raise BadInput(
                f"the slopes of {type(self.priors[0]).__name__} are taken at the draws that the nets run on, and "
                "cannot be left out afterwards; use a Gaussian or Laplace prior with this optimiser"
            )
        return context._replace(kl_weight=torch.zeros_like(context.kl_weight))

    def _slopes(self, piece: Piece, context: StepContext, prior: bool) -> Slopes:
        """What the gradients of a piece by mean and rho are made of, where each weight has a scale of its own."""
        assert piece.rho is not None
        turn = self.learner.noise.turn if piece.ruled else Turn.TIMES_EPSILON
        if self.direct:
            gradient, given = piece.gradients()
        else:
            turn, gradient, given = Turn.GIVEN, self.by_mean[:, piece.span], self.by_scale[:, piece.span]
        return Slopes(
            piece.mean,
            piece.rho,
            gradient,
            given,
            piece.epsilon,
            turn,
            context.kl_weight,
            self.pulls.part(piece.span) if prior else Pulls(),
            self.at_once if self.direct else 1,
            self._drawn(piece, *self._draw(context, 0)),
        )

    def _add_closed(self, context: StepContext) -> None:
        """The slopes of a closed KL that no kernel knows."""
        if self.closed is None or self.pulls.kind is not Pull.NOWHERE:
            return
        for piece in self.leaves.pieces:
            scale = self._scale(piece)
            for k, own in enumerate(self.priors):
                rows = piece.mean[k], scale[k], context.kl_weight[k]
                self.closed.add_slopes(
                    part(own, piece.span), *rows, self.by_mean[k, piece.span], self.by_scale[k, piece.span]
                )

    def _grouped(self, context: StepContext, prior: bool) -> tuple[Tensor, Tensor]:
        """The gradients by mean [K, R] and by rho [K, G], one rho a group."""
        assert self.scale is not None
        weight = context.kl_weight[:, None]
        random = self.problem.layout.random
        if self.pulls.kind is not Pull.NOWHERE and prior:
            centre, precision = self.pulls.line()
            self.by_mean += weight * precision * (self.mean[:, :random] - centre)
            self.by_scale += weight * precision * self.scale
        self.by_scale -= weight / self.scale
        by_rho = torch.stack([gather(row, self.groups) for row in self.by_scale])
        return self.by_mean, by_rho * self.rho.sigmoid()

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Beliefs:
        mean, rho = (self.mean, self.rho) if at is None else (at["mean"], at["rho"])
        random = self.problem.layout.random
        return MeanFieldBeliefs(mean, rho, self.groups, random, self.priors, self.given, self.noise, self.buffers)

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        return [{} for _ in nets]

    def state(self) -> State:
        return State({"mean": self.mean, "rho": self.rho}, {f"buffers.{k}": b for k, b in self.buffers.items()})


def _repeated(buffer: Tensor, times: int) -> Tensor:
    """A copy for each of several draws [S · K, ·]."""
    return buffer.repeat(times, *[1] * (buffer.dim() - 1))
