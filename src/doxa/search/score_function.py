"""The gradient of an expected objective, estimated from its values at perturbations of the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.contracts import Batch, Estimate, Inputs, Posterior, Problem
from doxa.data.rows import net_rows, take_rows
from doxa.engine.context import StepContext
from doxa.engine.contracts import SCALES, Beliefs, Parameter, Recipe, State
from doxa.engine.recipes import GradientRows
from doxa.posteriors import MeanField
from doxa.posteriors.mean_field import inverse_softplus
from doxa.random.keys import reseed
from doxa.random.philox import Stream, fill_normals
from doxa.search import sensitivity
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes, scale_groups
from doxa.search.engines.contract import Engine, Evaluate, EvaluationAtState, Exchange
from doxa.search.engines.in_process import evaluate_in_process
from doxa.search.perturbations.population import make_population
from doxa.search.population_evaluator import EvaluationBatch, PopulationEvaluator, frozen_batch_norms, rows_each
from doxa.weights.batch_norm import has_batch_norm
from doxa.weights.layout import call


class GradientEstimator(Protocol):
    """An estimator with a net in hand."""

    noise: dict[str, str]

    def estimate(
        self,
        distribution: SearchDistribution,
        generation: int,
        batch: EvaluationBatch,
        exchange: Exchange = evaluate_in_process,
    ) -> tuple[SearchSlopes, Tensor, Tensor]:
        """The slopes of the expected objective, and the value and the NLL of each perturbation that arrived."""
        ...


class Perturbation(Protocol):
    """How perturbations meet the net; one of local, weight_space, low_rank."""

    @property
    def name(self) -> str: ...

    @property
    def antithetic(self) -> bool: ...

    def start(self, evaluator: PopulationEvaluator) -> GradientEstimator: ...


@dataclass(frozen=True)
class GenerationResult:
    """What one net's generation came to: where it looked, the slopes there, its buffers, its NLL, words for records."""

    distribution: SearchDistribution
    slopes: SearchSlopes
    buffers: dict[str, Tensor]
    loss: Tensor
    metrics: dict[str, float]


class ScoreFunction:
    """Search distributions: rows of means and of coordinates of scales, moved by estimated slopes.

    ∇U = E_p(w|θ) f(w) ∇log p(w|θ)

    Its `engine` has workers evaluate; each of them holds a copy of the run, and `exchange` is how they are heard.
    Williams (1992), Simple statistical gradient-following algorithms for connectionist reinforcement learning.
    """

    eager = ""  # what is compared must first be known: nobody would expect a recording

    def __init__(self, fleet: Sequence[Any], problem: Problem) -> None:
        self.fleet, self.problem = fleet, problem.without_starts()
        self.engine: Engine = fleet[0].engine
        self.nets = len(fleet)
        first = fleet[0]
        self.groups = scale_groups(first.per, problem.layout)
        self.coordinate = first.coordinate
        self.mean = problem.start.clone()
        count = problem.layout.size if self.groups is None else len(self.groups)
        starts = torch.stack([problem.start.new_full((count,), learner.scale) for learner in fleet])
        self.scales = self.coordinate.of(starts)
        # What an optimiser adds to the scales at a step: zero before it, so that weight decay has nothing to draw on.
        self.scale_step = torch.zeros_like(self.scales)
        self.parameters = [Parameter("mean", self.mean), Parameter("scale_step", self.scale_step, SCALES)]
        self.populations = [
            make_population(learner.size, learner.estimator.antithetic, (*key, "search"), problem.start.device)
            for learner, key in zip(fleet, problem.seeds, strict=True)
        ]
        self.estimators: list[GradientEstimator | None] = [None] * self.nets
        self.net_slopes: list[SearchSlopes] = []
        self.relative = (
            torch.ones_like(self.mean) if any(learner.sensitivity for learner in fleet) else self.mean[:, :0]
        )
        self.norms = has_batch_norm(problem.net)
        self.buffers = {k: b.clone() for k, b in problem.buffers.items()}
        # Asked of an estimator that nothing is evaluated with: a search that was finished starts none.
        self.noise = first.estimator.start(self._evaluator(0, by_row=True)).noise
        self.net_metrics: list[dict[str, float]] = [{} for _ in fleet]
        self.pending_results: list[
            GenerationResult
        ] = []  # of the step under way: a copy made in it goes on with the next net
        self.exchange: Exchange = evaluate_in_process

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a worker, which has another exchange and finds estimators anew."""
        return {**self.__dict__, "exchange": None, "estimators": [None] * self.nets, "net_slopes": []}

    def distribution(self, net: int) -> SearchDistribution:
        """Where one net's search looks now."""
        relative = self.relative[net] if self.fleet[net].sensitivity else None
        scale = self.coordinate.scale(self.scales[net] + self.scale_step[net])
        return SearchDistribution(self.mean[net], scale, self.groups, relative)

    @torch.no_grad()
    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        try:
            while len(self.pending_results) < self.nets:
                self.pending_results.append(self._evaluate_generation(len(self.pending_results), batch, context))
            results = self.pending_results
        finally:
            self.pending_results = []
        # All or nothing: a net whose evaluation failed has left the others where they were.
        self._clamp_scales()
        for k, result in enumerate(results):
            for name, buffer in result.buffers.items():
                self.buffers[name][k] = buffer
            if result.distribution.relative is not None:
                self.relative[k] = result.distribution.relative
            self.net_metrics[k] = result.metrics
        self.net_slopes = [result.slopes for result in results]
        return torch.stack([result.loss for result in results])

    @torch.no_grad()
    def _clamp_scales(self) -> None:
        """Whoever took the last step, an optimiser of torch's or this one, scales go on from within their bounds."""
        self.scales.copy_(self.coordinate.within(self.scales + self.scale_step))
        self.scale_step.zero_()

    def _evaluate_generation(self, net: int, batch: Batch, context: StepContext) -> GenerationResult:
        """What a net's perturbations tell on its rows; nothing of it is kept yet."""
        x, y = net_rows(batch, net)
        if (
            self.problem.uses.draws_random_numbers
        ):  # what layers draw by themselves belongs to the step, whoever takes it
            reseed((int(context.stream.seeds[net]), int(context.stream.step), "middle"), self.mean.device)
        distribution, buffers = self.distribution(net), {name: b[net].clone() for name, b in self.buffers.items()}
        evaluation_batch = EvaluationBatch(x, y, buffers)
        middle = self._middle_batch(net, evaluation_batch)
        if self.norms:  # the running statistics are those of the net in the middle
            call(self.problem.net, self.problem.layout.weights(distribution.mean), buffers, middle.x)
        distribution = self._rescale_by_sensitivity(net, distribution, middle)
        estimator = self._estimator(net, distribution, middle)
        # Nets of a fleet have generations of their own, one after the other.
        number = int(context.stream.step) * self.nets + net
        slopes, values, nll = estimator.estimate(
            distribution, int(context.stream.step), evaluation_batch, self._numbered_exchange(number, net, distribution)
        )
        metrics = {
            "objective": float(_finite_mean(values)) * self.fleet[net].objective.sign,
            "scale": float(distribution.scale.log().mean().exp()),
            **slopes.norms(),
        }
        return GenerationResult(distribution, slopes, buffers, _finite_mean(nll), metrics)

    def _middle_batch(self, net: int, batch: EvaluationBatch) -> EvaluationBatch:
        """What the net in the middle sees: as many rows as each perturbation, the first ones."""
        learner = self.fleet[net]
        if not getattr(learner.estimator, "own_rows", False):
            return batch
        rows = slice(0, rows_each(len(batch.y), learner.size))
        return EvaluationBatch(take_rows(batch.x, rows), batch.y[rows], batch.buffers)

    def _rescale_by_sensitivity(
        self, net: int, distribution: SearchDistribution, batch: EvaluationBatch
    ) -> SearchDistribution:
        """The same with weights perturbed the less, the more they move the outputs on these rows, if so asked."""
        kind = self.fleet[net].sensitivity
        if kind is None:
            return distribution

        def forward(weights: Mapping[str, Tensor], x: Inputs) -> Tensor:
            with frozen_batch_norms(self.problem.net):
                return call(self.problem.net, weights, dict(batch.buffers), x)

        factors = sensitivity.TABLE[kind](forward, self.problem.layout, distribution.mean, batch.x)
        return replace(distribution, relative=factors)

    def _numbered_exchange(self, number: int, net: int, distribution: SearchDistribution) -> Exchange:
        search_state = distribution.mean, distribution.scale, self.populations[net].seeds

        def exchange(_: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
            return self.exchange(number, EvaluationAtState(evaluate, search_state), blocks)

        return exchange

    def _estimator(self, net: int, distribution: SearchDistribution, batch: EvaluationBatch) -> GradientEstimator:
        estimator = self.estimators[net]
        if estimator is None:
            objective = self.fleet[net].objective
            weights = self.problem.layout.weights(distribution.mean)
            output = call(self.problem.net, weights, {k: b.clone() for k, b in batch.buffers.items()}, batch.x)
            evaluator = self._evaluator(net, objective.by_row(output.to(distribution.mean.dtype), batch.y))
            estimator = self.estimators[net] = self.fleet[net].estimator.start(evaluator)
        return estimator

    def _evaluator(self, net: int, by_row: bool) -> PopulationEvaluator:
        return PopulationEvaluator(
            self.problem,
            self.populations[net],
            self.fleet[net].objective,
            by_row,
            self.problem.uses.supports_vmap,
            self.engine.parts,
        )

    def _gradients(self) -> list[tuple[Tensor, Tensor]]:
        return [
            learner.gradient(slopes, self.distribution(k), self.coordinate)
            for k, (learner, slopes) in enumerate(zip(self.fleet, self.net_slopes, strict=True))
        ]

    @torch.no_grad()
    def slopes(self, context: StepContext, prior: bool = True) -> list[Recipe]:
        by_mean, by_scale = (torch.stack(rows) for rows in zip(*self._gradients(), strict=True))
        all_columns = slice(0, self.mean.shape[1])
        decay = self.mean.new_tensor([learner.decay for learner in self.fleet])
        recipes: list[Recipe] = [
            GradientRows("mean", all_columns, True, by_mean, self.mean, decay=decay if bool(decay.any()) else None)
        ]
        scale_rates = self.mean.new_tensor([learner.scale_rate for learner in self.fleet])
        if bool((scale_rates > 0).any()):
            columns = slice(0, self.scale_step.shape[1])
            recipes.append(GradientRows("scale_step", columns, True, by_scale, self.scale_step, rate=scale_rates))
        return recipes

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Beliefs:
        mean, step = (self.mean, self.scale_step) if at is None else (at["mean"], at["scale_step"])
        return SearchBeliefs(self, mean, step)

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        """What the last step saw, by name."""
        return [self.net_metrics[k] for k in nets]

    def state(self) -> State:
        moving = {"mean": self.mean, "scales": self.scales, "scale_step": self.scale_step}
        return State(moving, {"relative": self.relative, **{f"buffers.{k}": b for k, b in self.buffers.items()}})


@dataclass(frozen=True, eq=False)
class SearchBeliefs:
    """What means [K, P] and steps of scales stand for: Gaussians over all weights."""

    score_function: ScoreFunction
    mean: Tensor
    step: Tensor

    @property
    def noise(self) -> dict[str, str]:
        return self.score_function.noise

    def distribution(self, net: int) -> SearchDistribution:
        """One net's search distribution, its scales within their bounds."""
        score_function = self.score_function
        relative = score_function.relative[net] if score_function.fleet[net].sensitivity else None
        scale = score_function.coordinate.scale(
            score_function.coordinate.within(score_function.scales[net] + self.step[net])
        )
        return SearchDistribution(self.mean[net], scale, score_function.groups, relative)

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        epsilon = torch.empty_like(self.mean)
        fill_normals(epsilon, stream)
        distributions = map(self.distribution, range(len(self.mean)))
        return torch.stack(
            [
                distribution.mean + distribution.scales * e
                for distribution, e in zip(distributions, epsilon, strict=True)
            ]
        )

    def posterior(self, net: int) -> Posterior:
        distribution, random, groups = (
            self.distribution(net),
            self.score_function.problem.layout.random,
            self.score_function.groups,
        )
        if distribution.relative is not None:
            return MeanField(distribution.mean.clone(), inverse_softplus(distribution.scales[:random]))
        if groups is None:
            return MeanField(distribution.mean.clone(), inverse_softplus(distribution.scale[:random]))
        random_groups = _random_groups(groups, random)
        return MeanField(
            distribution.mean.clone(), inverse_softplus(distribution.scale[: len(random_groups)]), random_groups
        )

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[net].clone() for k, b in self.score_function.buffers.items()},)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        return [Estimate(0.0) for _ in nets]


def _random_groups(groups: tuple[int, ...], random: int) -> tuple[int, ...]:
    """The groups of the random weights, which come first; point estimates have one, or one for each tensor."""
    return tuple(group for group, upto in zip(groups, accumulate(groups), strict=True) if upto <= random)


def _finite_mean(values: Tensor) -> Tensor:
    """The mean of what is a number: perturbations that are none count as the worst, and do not end a run."""
    return values[values.isfinite()].mean()
