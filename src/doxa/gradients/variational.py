"""The gradient of a mean-field Gaussian: by mean and rho, pulled back by hand from the leaves that the nets ran on.

With s = softplus(ρ) and λ = β/N, g the gradient of the batch's mean NLL by the first leaf and h what the noise makes of
that by the second (g ε, 2s g_v or ε g_δ: `noise/leaves.py`), the gradients of the free energy a row are

    by mean   g + λ ∂KL/∂m
    by rho    (h + λ ∂KL/∂s) · ds/dρ,   ds/dρ = 1/(1 + e^−ρ)

KL(q‖p) = −H(q) − E_q log p(w), whose first part is −Σ log s and a constant: its slope by s is −1/s, always exact. The
second has one of three forms. For a Gaussian prior N(c, 1/τ) it is τ((m − c)² + s²)/2, and a kernel adds

    ∂KL/∂m = τ (m − c),   ∂KL/∂s = τ s − 1/s

Another prior with a closed KL adds the slopes itself (`add_kl_slopes`). For any other one they are taken at a draw,
−(log p)′(w) and −(log p)′(w) ε: with shared noise at the draw that the net ran on, so that g − λ (log p)′(w) is pulled
back as one gradient, and with a rule, where no weights were drawn, at one of the prior's own.

Where a step is one pass, one draw or all draws side by side, nothing of this is stored: a recipe of what it is made of
goes to the stepper, which may work it out while it steps. Several passes add up their gradients by mean and scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Batch, Problem
from doxa.engine.context import StepContext
from doxa.engine.contracts import SCALES, Beliefs, Parameter, Recipe, State
from doxa.engine.recipes import GaussianSlopes, GradientRows
from doxa.errors import BadInput
from doxa.flat import (
    RHO_LIMIT,
    GaussianGradientInputs,
    PriorGradientKind,
    PriorGradients,
    RegenerableNoise,
    ScalePullback,
    accumulate_gradients,
    can_regenerate_noise,
    fill_scale,
    mixture_slope,
)
from doxa.gradients.forward_backward import ForwardBackward, why_eager
from doxa.gradients.mean_field_beliefs import MeanFieldBeliefs, scale_per_weight
from doxa.noise import Leaves
from doxa.noise.leaves import LeafSegment, noise_by_weight, noise_sites
from doxa.posteriors.divergence import closed_form, prior_gradients_of
from doxa.posteriors.mean_field import sum_groups
from doxa.random import streams
from doxa.random.philox import Stream, fill_normals
from doxa.weights.batch_norm import average_buffers
from doxa.weights.layout import as_rows, bind_prior, slice_prior

# Where so many weights are drawn, their noise is made a second time from its counters rather than kept: a tenth less
# memory, for a step of two threads that takes a sixth longer.
REGENERATE_NOISE_FROM = 1 << 25


def vectorizes_draws(problem: Problem) -> bool:
    """Whether all draws of a step run as one program: on a GPU, which a batch alone does not fill."""
    return problem.uses.supports_vmap and problem.start.is_cuda


class VariationalGradient:
    """Mean-field Gaussians: rows of means and rhos, gradients by hand, no autograd through either.

    ∇F/N by mean and rho, of −(1/B) Σᵢ E_q log p(yᵢ | xᵢ, w) + (β/N) KL(q‖p)

    Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    def __init__(self, fleet: Sequence[Any], problem: Problem) -> None:
        self.learner, self.problem = fleet[0], problem.without_starts()
        self.nets = len(fleet)
        layout = problem.layout
        # Kept, so that no two of them can have one id: a learner's prior may be made anew each time it is asked for.
        self.given_priors = [learner.prior for learner in fleet]
        self.prior_ids = [id(prior) for prior in self.given_priors]
        self.priors = [bind_prior(prior, layout, problem.start[0]) for prior in self.given_priors]
        starts = [
            learner.posterior.start(layout, problem.start[k], problem.seeds[k]) for k, learner in enumerate(fleet)
        ]
        self.groups = starts[0].groups
        self.mean, self.rho = as_rows([s.mean for s in starts]), as_rows([s.rho for s in starts])
        self.parameters = [Parameter("mean", self.mean), Parameter("rho", self.rho, SCALES, RHO_LIMIT)]
        # One scale a group is spread out over its weights; one a weight is made of rho wherever it is needed.
        random_mean = self.mean[:, : layout.random]
        self.scale = (
            None if self.groups is None else torch.empty_like(random_mean, memory_format=torch.contiguous_format)
        )
        self.draws_per_pass = self.learner.samples if vectorizes_draws(problem) else 1
        vectorized = problem.vectorized or self.draws_per_pass > 1
        self.leaves = Leaves(
            layout,
            problem.uses,
            self.learner.noise,
            self.mean,
            self.rho if self.groups is None else None,
            self.scale,
            vectorized,
            self.draws_per_pass,
            keep_epsilon=self.draws_per_pass > 1
            or random_mean.numel() < REGENERATE_NOISE_FROM
            or not can_regenerate_noise(self.mean),
        )
        # Of every segment, by its first weight, the nets' priors of just its weights.
        self.segment_priors = {
            segment.span.start: [slice_prior(prior, segment.span, layout.random) for prior in self.priors]
            for segment in self.leaves.segments
        }
        has_rule = self.leaves.has_rule
        sites = partial(noise_sites, problem.uses) if has_rule else None
        self.forward_backward = ForwardBackward(
            self.problem, self.leaves.first, self.leaves.second, sites, self.learner.noise.rule, vectorized
        )
        self._choose_prior_gradients()
        self.point_gradient: Tensor | None = None  # what several samples add up to, by the point estimates
        self.buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.noise = noise_by_weight(layout, problem.uses, self.learner.noise)
        self.eager = why_eager(problem)

    def _choose_prior_gradients(self) -> None:
        """Who works the prior's slopes out: a kernel, the prior in closed form, or the prior at the draws."""
        random = self.problem.layout.random
        self.closed_form = closed_form(self.priors[0])
        prior_gradients = prior_gradients_of(self.priors, random, self.mean)
        single_pass = self.draws_per_pass == self.learner.samples
        # A mixture's slope is taken at the draw that the net ran on, which local noise does not have.
        kernel_knows_prior = prior_gradients.kind is not PriorGradientKind.MIXTURE or (
            not self.leaves.has_rule and single_pass and self.groups is None
        )
        self.prior_gradients = prior_gradients if kernel_knows_prior else PriorGradients()
        self.mixture_coefficients = (
            prior_gradients.coefficients if prior_gradients.kind is PriorGradientKind.MIXTURE else None
        )
        self.direct_gradients = (
            single_pass and self.groups is None and self.prior_gradients.kind is not PriorGradientKind.NONE
        )
        if not self.direct_gradients:
            random_mean = self.mean[:, :random]
            self.by_mean, self.by_scale = torch.zeros_like(random_mean), torch.zeros_like(random_mean)

    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        if self.groups is not None:
            self._update_scale()
        samples, draws_per_pass = self.learner.samples, self.draws_per_pass
        total, buffers_per_draw = torch.zeros_like(context.kl_weight), []
        for first in range(0, samples, draws_per_pass):
            draws = [self._draw(context, s) for s in range(first, first + draws_per_pass)]
            for number, (stream, sign) in enumerate(draws):
                self.leaves.draw(stream.with_number(stream.number + streams.WEIGHTS), sign, number)
            rows = [(stream.with_number(stream.number + streams.ROWS), sign) for stream, sign in draws]
            buffers = (
                self.buffers
                if samples == 1
                else {k: _repeat_buffer(b, draws_per_pass) for k, b in self.buffers.items()}
            )
            losses = self.forward_backward(batch, buffers, rows, 1 / samples, context.compiled)
            total = total + losses.view(draws_per_pass, self.nets).sum(0)
            buffers_per_draw += [
                {k: b[d * self.nets : (d + 1) * self.nets] for k, b in buffers.items()} for d in range(draws_per_pass)
            ]
            if not self.direct_gradients:
                for number, (stream, sign) in enumerate(draws):
                    self._accumulate(context, stream, sign, number, first=first == number == 0)
        if samples > 1:
            for name, value in average_buffers(buffers_per_draw).items():
                self.buffers[name].copy_(value)
        return total

    def _draw(self, context: StepContext, sample: int) -> tuple[Stream, float]:
        """The streams and the sign of a sample: those of a pair differ in the sign alone."""
        paired = self.learner.antithetic
        return context.stream.with_number(
            streams.SAMPLE * (sample // 2 if paired else sample)
        ), -1.0 if paired and sample % 2 else 1.0

    @torch.no_grad()
    def _update_scale(self) -> None:
        assert self.scale is not None
        assert self.groups is not None
        self.scale.copy_(scale_per_weight(self.rho, self.groups))

    @torch.no_grad()
    def _accumulate(self, context: StepContext, stream: Stream, sign: float, number: int, first: bool) -> None:
        """Add one sample's gradients to those by mean and scale, and −log p's at its draw without a closed KL."""
        net_rows = slice(number * self.nets, (number + 1) * self.nets)
        for whole_segment in self.leaves.segments:
            segment = whole_segment.rows_of_draw(net_rows) if self.draws_per_pass > 1 else whole_segment
            by_mean, by_scale = self.by_mean[:, segment.span], self.by_scale[:, segment.span]
            gradient, second_gradient = (rows[net_rows] for rows in whole_segment.gradients())
            weight, slope = context.kl_weight[:, None] / self.learner.samples, None
            if self.prior_gradients.kind is PriorGradientKind.NONE and self.closed_form is None and segment.has_rule:
                scale = self._scale(segment)
                epsilon = torch.empty_like(scale)
                fill_normals(epsilon, stream.with_number(stream.number + streams.PRIOR), segment.span.start, sign)
                slope = self._log_prior_slopes(segment, torch.addcmul(segment.mean, scale, epsilon)).mul_(weight)
                gradient = gradient - slope
                slope.mul_(epsilon)
            elif self.prior_gradients.kind is PriorGradientKind.NONE and self.closed_form is None:
                # The net ran on this very draw: one gradient serves both.
                gradient = second_gradient = gradient - weight * self._log_prior_slopes(segment, segment.flat)
            pullback = self.learner.noise.pullback if segment.has_rule else ScalePullback.TIMES_EPSILON
            rows = gradient, second_gradient, segment.epsilon, segment.rho, segment.scale, pullback, by_mean, by_scale
            accumulate_gradients(*rows, add=not first, regenerable_noise=self._regenerable_noise(segment, stream, sign))
            if slope is not None:
                by_scale -= slope
        if self.leaves.point_gradient_buffers and number == 0:  # all draws of the pass together
            point_gradient = self.leaves.point_gradient()
            self.point_gradient = (
                point_gradient if first or self.point_gradient is None else self.point_gradient + point_gradient
            )

    def _regenerable_noise(self, segment: LeafSegment, stream: Stream, sign: float) -> RegenerableNoise | None:
        """Where a segment's ε came from, if it was not kept."""
        noise = RegenerableNoise(stream.with_number(stream.number + streams.WEIGHTS), segment.span.start, sign)
        return noise if segment.epsilon is None else None

    def _scale(self, segment: LeafSegment) -> Tensor:
        if segment.rho is None:
            assert segment.scale is not None
            return segment.scale
        return fill_scale(torch.empty_like(segment.rho, memory_format=torch.contiguous_format), segment.rho)

    def _log_prior_slopes(self, segment: LeafSegment, w: Tensor) -> Tensor:
        """d log p/dw of each net's prior at its weights [K, n]."""
        if self.mixture_coefficients is not None and w.is_cuda:  # all of them at once; a CPU has a kernel for each
            return mixture_slope(w, *self.mixture_coefficients.split(1, dim=1))
        priors = self.segment_priors[segment.span.start]
        return torch.stack([prior.grad_log_prob(row) for prior, row in zip(priors, w, strict=True)])

    @torch.no_grad()
    def slopes(self, context: StepContext, prior: bool = True) -> list[Recipe]:
        if not prior:
            context = self._without_prior(context)
        self._add_closed_form(context)
        random = self.problem.layout.random
        if self.groups is None:
            recipes: list[Recipe] = [
                GaussianSlopes(segment.span, self._gradient_inputs(segment, context, prior))
                for segment in self.leaves.segments
            ]
        else:
            by_mean, by_rho = self._grouped_gradients(context, prior)
            span = slice(0, random)
            recipes = [
                GradientRows("mean", span, True, by_mean, self.mean[:, span]),
                GradientRows("rho", slice(0, self.rho.shape[1]), True, by_rho, self.rho),
            ]
        if self.leaves.point_gradient_buffers:
            point_gradient = self.leaves.point_gradient() if self.direct_gradients else self.point_gradient
            assert point_gradient is not None
            span = slice(random, self.problem.layout.size)
            recipes.append(GradientRows("mean", span, False, point_gradient, self.mean[:, span]))
        return recipes

    def _without_prior(self, context: StepContext) -> StepContext:
        if self.closed_form is None and self.prior_gradients.kind is PriorGradientKind.NONE:
            raise BadInput(
                f"the slopes of {type(self.priors[0]).__name__} are taken at the draws that the nets run on, and "
                "cannot be left out afterwards; use a prior with a closed KL, such as a Gaussian, with this optimiser"
            )
        return context._replace(kl_weight=torch.zeros_like(context.kl_weight))

    def _gradient_inputs(self, segment: LeafSegment, context: StepContext, prior: bool) -> GaussianGradientInputs:
        """What the gradients of a segment by mean and rho are made of, where each weight has a scale of its own."""
        assert segment.rho is not None
        pullback = self.learner.noise.pullback if segment.has_rule else ScalePullback.TIMES_EPSILON
        if self.direct_gradients:
            gradient, second_gradient = segment.gradients()
        else:
            pullback, gradient, second_gradient = (
                ScalePullback.IDENTITY,
                self.by_mean[:, segment.span],
                self.by_scale[:, segment.span],
            )
        return GaussianGradientInputs(
            segment.mean,
            segment.rho,
            gradient,
            second_gradient,
            segment.epsilon,
            pullback,
            context.kl_weight,
            self.prior_gradients.columns(segment.span) if prior else PriorGradients(),
            self.draws_per_pass if self.direct_gradients else 1,
            self._regenerable_noise(segment, *self._draw(context, 0)),
        )

    def _add_closed_form(self, context: StepContext) -> None:
        """The slopes of a closed KL that no kernel knows."""
        if self.closed_form is None or self.prior_gradients.kind is not PriorGradientKind.NONE:
            return
        for segment in self.leaves.segments:
            scale = self._scale(segment)
            for k, prior in enumerate(self.segment_priors[segment.span.start]):
                rows = segment.mean[k], scale[k], context.kl_weight[k]
                prior.add_kl_slopes(*rows, self.by_mean[k, segment.span], self.by_scale[k, segment.span])

    def _grouped_gradients(self, context: StepContext, prior: bool) -> tuple[Tensor, Tensor]:
        """The gradients by mean [K, R] and by rho [K, G], one rho a group."""
        assert self.scale is not None
        weight = context.kl_weight[:, None]
        random = self.problem.layout.random
        if self.prior_gradients.kind is not PriorGradientKind.NONE and prior:
            centre, precision = self.prior_gradients.centre_and_precision()
            self.by_mean += weight * precision * (self.mean[:, :random] - centre)
            self.by_scale += weight * precision * self.scale
        self.by_scale -= weight / self.scale
        by_rho = torch.stack([sum_groups(row, self.groups) for row in self.by_scale])
        return self.by_mean, by_rho * self.rho.sigmoid()

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Beliefs:
        mean, rho = (self.mean, self.rho) if at is None else (at["mean"], at["rho"])
        random = self.problem.layout.random
        return MeanFieldBeliefs(mean, rho, self.groups, random, self.priors, self.prior_ids, self.noise, self.buffers)

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        return [{} for _ in nets]

    def state(self) -> State:
        return State({"mean": self.mean, "rho": self.rho}, {f"buffers.{k}": b for k, b in self.buffers.items()})


def _repeat_buffer(buffer: Tensor, times: int) -> Tensor:
    """A copy for each of several draws [S · K, ·]."""
    return buffer.repeat(times, *[1] * (buffer.dim() - 1))
