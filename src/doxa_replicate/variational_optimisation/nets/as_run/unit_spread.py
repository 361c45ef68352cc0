"""Perturbations as the document's author drew them: of each tensor, divided by its own standard deviation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from doxa.posteriors.mean_field import expand_groups
from doxa.search import shaping
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes
from doxa.search.perturbations.weight_space import WeightSpace, WeightSpaceEstimator
from doxa.search.population_evaluator import PopulationEvaluator
from doxa.search.shaping import Shaping


@dataclass(frozen=True)
class UnitSpread(WeightSpace):
    """Every perturbation has rows of its own and, in each tensor, a standard deviation of exactly one.

    e = (ε/s) / std(ε/s) tensor by tensor,  w_n = mean + σ e_n;
    by the mean σ/(σ₁² N²) Σ_n u_n e_n,  by log σ² (1/N²) Σ_n u_n (‖e_n‖² − d)

    σ₁ is σ at the start, and u_n the utilities. Both sums are divided by N once more than a mean is. ‖e‖² in a tensor
    is d − 1 + d·ē²: what moves a tensor's σ is no length, but how far a perturbation's mean ē is from nothing.
    """

    shaping: Shaping = shaping.utilities
    own_rows: bool = True
    first_scale: float = 0.05

    name = "unit_spread"

    def start(self, evaluator: PopulationEvaluator) -> UnitSpreadEstimator:
        return UnitSpreadEstimator(self, evaluator)


class UnitSpreadEstimator(WeightSpaceEstimator):
    """Perturbations that are made of seeds twice: to be evaluated, and for the update."""

    estimator: UnitSpread

    def spread(self, distribution: SearchDistribution, generation: int, units: slice) -> Tensor:
        """e of some units [units, P]."""
        e = self.evaluator.population.noise(generation, units, distribution.mean)
        if distribution.relative is not None:
            e *= distribution.relative
        for slot in self.evaluator.problem.layout.slots:
            if slot.stop - slot.start > 1:
                e[:, slot.span] /= e[:, slot.span].std(1, keepdim=True)
        return e

    def points(self, distribution: SearchDistribution, generation: int, units: slice) -> Tensor:
        by_group = replace(distribution, relative=None)  # e has what is relative in it
        return self.evaluator.population.points(by_group, self.spread(distribution, generation, units))

    def slopes(self, distribution: SearchDistribution, generation: int, weights: Tensor) -> SearchSlopes:
        """His two gradients, the latter twice: by log σ there is twice as much as by log σ²."""
        population = self.evaluator.population
        by_mean, by_log = torch.zeros_like(distribution.mean), torch.zeros_like(distribution.mean)
        odd, even = population.odd_and_even(weights.to(distribution.mean))
        for units in population.blocks(len(distribution.mean)):
            e = self.spread(distribution, generation, units)
            by_mean.addmv_(e.T, odd[units])
            by_log.addmv_(e.square_().T, even[units])
        by_log -= even.sum()
        scale = expand_groups(distribution.scale, distribution.groups)
        by_mean *= scale / (self.estimator.first_scale * population.size) ** 2
        return SearchSlopes(by_mean, distribution.by_group(by_log) * (2 / population.size**2))
