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
from doxa.gradients.passes import Passes, Sites, why_eager
from doxa.noise.interception import Rule
from doxa.noise.leaves import ROWS, Gathered, leaves_of, runs
from doxa.posteriors.divergence import kl
from doxa.random.philox import Stream

# The slopes of log p at a net's weights [R].
Slope = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class PointBeliefs:
    """What weights [K, P] stand for: points, or the middles of masks."""

    mean: Tensor
    priors: Sequence[Prior | None]
    believe: Callable[[Tensor, int], Posterior]
    drawn: Callable[[Tensor, Stream], Tensor]
    noise: dict[str, str]
    own: Mapping[str, Tensor]  # buffers [K, ·]

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        return self.drawn(self.mean.clone(), stream)

    def posterior(self, net: int) -> Posterior:
        return self.believe(self.mean[net].clone(), net)

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[net].clone() for k, b in self.own.items()},)

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
        slopes: Sequence[Slope | None],
        believe: Callable[[Tensor, int], Posterior],
        noise: dict[str, str] | None = None,
        sites: Sites | None = None,
        rule: Rule | None = None,
        drawn: Callable[[Tensor, Stream], Tensor] = lambda mean, stream: mean,
    ) -> None:
        self.problem, self.priors, self.prior_slopes, self.believe = problem.light(), priors, slopes, believe
        self.drawn = drawn
        self.mean = problem.start.clone()
        leaves = leaves_of(problem.layout, self.mean, problem.together)
        steal = problem.together or len(priors) == 1
        self.gathered = [
            (slice(run[0].start, run[-1].stop), Gathered(run, leaves, len(priors), problem.start))
            for run in runs(problem.layout.slots, lambda s: s.random, steal)
        ]
        self.passes = Passes(self.problem, leaves, None, sites, rule, problem.together)
        self.buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.parameters = [Parameter("mean", self.mean)]
        self.eager = why_eager(problem)
        self.noise = noise or {s.name: "point" for s in problem.layout.slots}

    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        for _, gathered in self.gathered:
            gathered.clear()
        return self.passes(batch, self.buffers, [(context.stream.other(ROWS), 1.0)], compiled=context.compiled)

    @torch.no_grad()
    def slopes(self, context: StepContext, prior: bool = True) -> list[Recipe]:
        random = self.problem.layout.random
        found = [
            GradientRows("mean", span, span.start < random, gathered.rows, self.mean[:, span])
            for span, gathered in self.gathered
        ]
        for k, slope in enumerate(self.prior_slopes if prior else ()):
            if slope is None:
                continue
            pull = slope(self.mean[k, :random]) * context.kl_weight[k]
            for recipe in found:
                if recipe.random:
                    recipe.rows[k].sub_(pull[recipe.span])
        return [*found]

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Beliefs:
        mean = self.mean if at is None else at["mean"]
        return PointBeliefs(mean, self.priors, self.believe, self.drawn, self.noise, self.buffers)

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        return [{} for _ in nets]

    def state(self) -> State:
        return State({"mean": self.mean}, {f"buffers.{k}": b for k, b in self.buffers.items()})
