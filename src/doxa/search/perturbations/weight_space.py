"""Perturbations of the weights themselves."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.search import shaping
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes
from doxa.search.engines.contract import Exchange
from doxa.search.engines.in_process import evaluate_in_process
from doxa.search.population_evaluator import Evaluation, EvaluationBatch, NamedTensors, PopulationEvaluator
from doxa.search.shaping import Shaping


@dataclass(frozen=True)
class WeightSpace:
    """Every perturbation is one net, judged by all rows of the batch.

    ∂U/∂mean ≈ (1/N) Σ_n f(w_n) ε_n/scale,  w_n = mean + scale ∘ ε_n

    It asks nothing of net or objective. Its noise falls with the number of perturbations alone, not with that of rows.
    Rechenberg (1973), Evolutionsstrategie; Salimans et al. (2017), Evolution strategies as a scalable alternative to
    reinforcement learning.
    """

    antithetic: bool = True
    shaping: Shaping = shaping.centred_ranks
    baseline: bool = False  # whether a weight is that of a value against all others'

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
        population = self.evaluator.population
        points = population.points(distribution, population.noise(generation, units, distribution.mean))
        layout, stream = self.evaluator.problem.layout, population.stream(generation, units)

        def forward(flat: Tensor, buffers: NamedTensors) -> Tensor:
            return self.evaluator.forward(layout.weights(flat), buffers, batch.x)

        outputs = self.evaluator.map_perturbations(forward, points, batch, stream)
        evaluation = self.evaluator.evaluate(outputs, layout.parameters(points), batch.y)
        return Evaluation(self.evaluator.row_means(evaluation.values), evaluation.nll)

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
        return population.slopes(distribution, generation, weights), table[:, 0], table[:, 1]
