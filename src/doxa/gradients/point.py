"""The gradient of point estimates: by the weights themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Batch, Estimate, Posterior, Prior, Problem
from doxa.engine.context import StepContext
from doxa.engine.contracts import Beliefs, Parameter, Recipe, State
from doxa.engine.recipes import GradientRows
from doxa.gradients.forward_backward import ForwardBackward, Sites, why_eager
from doxa.noise.interception import Rule
from doxa.noise.leaves import GradientBuffer, group_slots, make_leaves
from doxa.posteriors.divergence import kl
from doxa.random import streams
from doxa.random.philox import Stream

# The slopes of log p at a net's weights [R].
PriorSlope = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class PointBeliefs:
    """What weights [K, P] stand for: points, or the middles of masks."""

    mean: Tensor
    priors: Sequence[Prior | None]
    make_posterior: Callable[[Tensor, int], Posterior]
    draw_weights: Callable[[Tensor, Stream], Tensor]
    noise: dict[str, str]
    buffers_by_name: Mapping[str, Tensor]  # buffers [K, ·]

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        return self.draw_weights(self.mean.clone(), stream)

    def posterior(self, net: int) -> Posterior:
        return self.make_posterior(self.mean[net].clone(), net)

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[net].clone() for k, b in self.buffers_by_name.items()},)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        return [Estimate(0.0) if (p := self.priors[k]) is None else kl(self.posterior(k), p) for k in nets]


class PointGradient:
    """Vectors of weights: the nets run on views of them, gradients come back as rows.

    ∇ = −(1/B) Σᵢ ∇log p(yᵢ | xᵢ, w) − (β/N) ∇log p(w)

    With a `rule` the nets meet noise of their own on the way, as in dropout.
    """

    def __init__(
        self,
        problem: Problem,
        priors: Sequence[Prior | None],
        slopes: Sequence[PriorSlope | None],
        make_posterior: Callable[[Tensor, int], Posterior],
        noise: dict[str, str] | None = None,
        sites: Sites | None = None,
        rule: Rule | None = None,
        draw_weights: Callable[[Tensor, Stream], Tensor] = lambda mean, stream: mean,
    ) -> None:
        self.problem, self.priors, self.prior_slopes, self.make_posterior = (
            problem.without_starts(),
            priors,
            slopes,
            make_posterior,
        )
        self.draw_weights = draw_weights
        self.mean = problem.start.clone()
        leaves = make_leaves(problem.layout, self.mean, problem.vectorized)
        adopt_gradients = problem.vectorized or len(priors) == 1
        self.gradient_buffers = [
            (slice(group[0].start, group[-1].stop), GradientBuffer(group, leaves, len(priors), problem.start))
            for group in group_slots(problem.layout.slots, lambda s: s.random, adopt_gradients)
        ]
        self.forward_backward = ForwardBackward(self.problem, leaves, None, sites, rule, problem.vectorized)
        self.buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.parameters = [Parameter("mean", self.mean)]
        self.eager = why_eager(problem)
        self.noise = noise or {s.name: "point" for s in problem.layout.slots}

    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        for _, buffer in self.gradient_buffers:
            buffer.clear()
        return self.forward_backward(
            batch, self.buffers, [(context.stream.with_number(streams.ROWS), 1.0)], compiled=context.compiled
        )

    @torch.no_grad()
    def slopes(self, context: StepContext, prior: bool = True) -> list[Recipe]:
        random = self.problem.layout.random
        gradient_rows = [
            GradientRows("mean", span, span.start < random, buffer.rows, self.mean[:, span])
            for span, buffer in self.gradient_buffers
        ]
        for k, slope in enumerate(self.prior_slopes if prior else ()):
            if slope is None:
                continue
            prior_gradient = slope(self.mean[k, :random]) * context.kl_weight[k]
            for recipe in gradient_rows:
                if recipe.random:
                    recipe.rows[k].sub_(prior_gradient[recipe.span])
        return [*gradient_rows]

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Beliefs:
        mean = self.mean if at is None else at["mean"]
        return PointBeliefs(mean, self.priors, self.make_posterior, self.draw_weights, self.noise, self.buffers)

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        return [{} for _ in nets]

    def state(self) -> State:
        return State({"mean": self.mean}, {f"buffers.{k}": b for k, b in self.buffers.items()})
