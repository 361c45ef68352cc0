"""Perturbations of the weights themselves."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from doxa.contracts import Inputs
from doxa.random.philox import Stream
from doxa.search import shaping
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes
from doxa.search.engines.contract import Exchange
from doxa.search.engines.in_process import evaluate_in_process
from doxa.search.population_evaluator import (
    Evaluation,
    EvaluationBatch,
    NamedTensors,
    PopulationEvaluator,
    rows_each,
)
from doxa.search.shaping import Shaping


@dataclass(frozen=True)
class WeightSpace:
    """Every perturbation is one net, judged by all rows of the batch.

    ∂U/∂mean ≈ (1/N) Σ_n f(w_n) ε_n/scale,  w_n = mean + scale ∘ ε_n

    It asks nothing of net or objective. Its noise falls with the number of perturbations alone, not with that of rows.
    With `own_rows` every perturbation is judged by rows of its own, the batch divided evenly among them, mirror images
    too: what rows have in common no longer moves all values alike, and other rows are part of what they are ranked by.
    Rechenberg (1973), Evolutionsstrategie; Salimans et al. (2017), Evolution strategies as a scalable alternative to
    reinforcement learning.
    """

    antithetic: bool = True
    shaping: Shaping = shaping.centred_ranks
    baseline: bool = False  # whether a weight is that of a value against all others'
    own_rows: bool = False

    name = "weight_space"

    def start(self, evaluator: PopulationEvaluator) -> WeightSpaceEstimator:
        return WeightSpaceEstimator(self, evaluator)


class WeightSpaceEstimator:
    """Weights of many nets at a time, made of seeds and forgotten; made again for the update."""

    def __init__(self, estimator: WeightSpace, evaluator: PopulationEvaluator) -> None:
        self.estimator, self.evaluator = estimator, evaluator
        self.noise = {s.name: "search" for s in evaluator.problem.layout.slots}

    @property
    def numbers_per_unit(self) -> int:
        """Numbers that one unit needs."""
        return self.evaluator.population.per_unit * self.evaluator.problem.layout.size

    @torch.no_grad()
    def evaluate_units(
        self, distribution: SearchDistribution, generation: int, units: slice, batch: EvaluationBatch
    ) -> Evaluation:
        """What the perturbations of some units come to [n]."""
        points = self.points(distribution, generation, units)
        layout, stream = self.evaluator.problem.layout, self.evaluator.population.stream(generation, units)
        evaluate = self._on_own_rows if self.estimator.own_rows else self._on_all_rows
        evaluation = evaluate(points, layout.parameters(points), units, batch, stream)
        return Evaluation(self.evaluator.row_means(evaluation.values), evaluation.nll)

    def points(self, distribution: SearchDistribution, generation: int, units: slice) -> Tensor:
        """The weights of some units' nets [n, P]."""
        population = self.evaluator.population
        return population.points(distribution, population.noise(generation, units, distribution.mean))

    def slopes(self, distribution: SearchDistribution, generation: int, weights: Tensor) -> SearchSlopes:
        """What weights [N] of all perturbations say of the slopes."""
        return self.evaluator.population.slopes(distribution, generation, weights)

    def _on_all_rows(
        self, points: Tensor, parameters: NamedTensors, units: slice, batch: EvaluationBatch, stream: Stream
    ) -> Evaluation:
        layout = self.evaluator.problem.layout

        def forward(flat: Tensor, buffers: NamedTensors) -> Tensor:
            return self.evaluator.forward(layout.weights(flat), buffers, batch.x)

        outputs = self.evaluator.map_perturbations(forward, points, batch, stream)
        return self.evaluator.evaluate(outputs, parameters, batch.y)

    def _on_own_rows(
        self, points: Tensor, parameters: NamedTensors, units: slice, batch: EvaluationBatch, stream: Stream
    ) -> Evaluation:
        population, layout = self.evaluator.population, self.evaluator.problem.layout
        each, place = rows_each(len(batch.y), population.size), population.perturbation_slice(units)
        x, y = (
            tree_map(lambda t: t[place.start * each : place.stop * each].unflatten(0, (-1, each)), rows)
            for rows in (batch.x, batch.y)
        )

        def forward(net: tuple[Tensor, Inputs], buffers: NamedTensors) -> Tensor:
            return self.evaluator.forward(layout.weights(net[0]), buffers, net[1])

        outputs = self.evaluator.map_perturbations(forward, (points, x), batch, stream)
        return self.evaluator.evaluate_own_rows(outputs, parameters, y)

    @torch.no_grad()
    def estimate(
        self,
        distribution: SearchDistribution,
        generation: int,
        batch: EvaluationBatch,
        exchange: Exchange = evaluate_in_process,
    ) -> tuple[SearchSlopes, Tensor, Tensor]:
        """The slopes, and the value and NLL of each perturbation that arrived."""
        population, settings = self.evaluator.population, self.estimator
        blocks = list(population.blocks(self.numbers_per_unit, parts=self.evaluator.parts))
        parts = exchange(
            generation, lambda units: self.evaluate_units(distribution, generation, units, batch).as_tensor(), blocks
        )
        table, arrival_mask = population.gather_arrived(parts, blocks)
        weights = population.weigh_arrived(table[:, 0], arrival_mask, settings.shaping, settings.baseline)
        return self.slopes(distribution, generation, weights), table[:, 0], table[:, 1]
