"""Perturbations of low rank: a full one's variance in every weight, for the price of two thin products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from doxa.errors import require_whole
from doxa.noise.interception import Apply, Interception, Site
from doxa.noise.leaves import noise_sites
from doxa.noise.source import NoiseSource, RecordingSource
from doxa.random import streams
from doxa.search import shaping
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes
from doxa.search.engines.contract import Exchange
from doxa.search.engines.in_process import evaluate_in_process
from doxa.search.perturbations.whole_weights import PerturbedTensors, WholeWeightPerturbations
from doxa.search.population_evaluator import Evaluation, EvaluationBatch, NamedTensors, PopulationEvaluator
from doxa.search.shaping import Shaping
from doxa.weights.layout import Slot


@dataclass(frozen=True)
class LowRank:
    """Every perturbation of a matrix is a product of two thin ones, so that the nets share their largest products.

    W_n = mean + scale · A_n C_nᵀ/√r,  A_n [out, r] and C_n [in, r] standard normal;
    x W_nᵀ = x meanᵀ + scale (x C_n) A_nᵀ/√r

    Every entry has the variance of a full perturbation, and entries are uncorrelated: slopes by the mean stay unbiased
    to the second order of the objective. Scales stay as they are, one for all weights of a matrix. Weights that are no
    matrix of one linear map are perturbed as in `weight_space`.
    Sarkar et al. (2025), Evolution strategies at the hyperscale.
    """

    rank: int = 1
    antithetic: bool = True
    shaping: Shaping = shaping.centred_ranks
    baseline: bool = False  # whether a weight is that of a value against all others'

    name = "low_rank"

    def __post_init__(self) -> None:
        require_whole("rank", self.rank)

    def start(self, evaluator: PopulationEvaluator) -> LowRankEstimator:
        return LowRankEstimator(self, evaluator)


class LowRankEstimator:
    """Thin matrices made of seeds, each perturbation with its own."""

    def __init__(self, estimator: LowRank, evaluator: PopulationEvaluator) -> None:
        self.estimator, self.evaluator = estimator, evaluator
        layout, uses = evaluator.problem.layout, evaluator.problem.uses
        single = {k: u for k, u in uses.single_use.items() if u.operation == "linear" and u.role == "weight"}
        self.uses = replace(uses, single_use=single)
        self.low_rank_slots = [s for s in layout.random_slots if s.name in single]
        self.whole_weights = WholeWeightPerturbations(
            [s for s in layout.slots if s not in self.low_rank_slots], evaluator.population
        )
        self.noise = {s.name: "low-rank search" if s in self.low_rank_slots else "search" for s in layout.slots}
        self.factor_sizes = [n * estimator.rank for s in self.low_rank_slots for n in s.shape]

    @property
    def numbers_per_unit(self) -> int:
        """Numbers that one unit is made of."""
        return sum(self.factor_sizes) + sum(s.stop - s.start for s in self.whole_weights.slots)

    def _factors(self, generation: int, units: slice, like: Tensor) -> list[tuple[Slot, Tensor, Tensor]]:
        """A [units, out, r] and C [units, in, r] of each matrix."""
        flat_noise = self.evaluator.population.noise(
            generation, units, like.new_empty(sum(self.factor_sizes)), streams.SEARCH_FACTORS
        )
        parts = [part.unflatten(1, (-1, self.estimator.rank)) for part in flat_noise.split(self.factor_sizes, 1)]
        return list(zip(self.low_rank_slots, parts[::2], parts[1::2], strict=True))

    @torch.no_grad()
    def evaluate_units(
        self, distribution: SearchDistribution, generation: int, units: slice, batch: EvaluationBatch
    ) -> Evaluation:
        """What the perturbations of some units come to [n]."""
        evaluator, population = self.evaluator, self.evaluator.population
        whole_weights, parameters = self.whole_weights.points(distribution, generation, units)
        scales, factors = distribution.scales, {}
        for s, left, right in self._factors(generation, units, distribution.mean):
            # A mirror image has one of the two thin matrices turned round.
            step = left * (scales[s.start] * self.estimator.rank**-0.5)
            factors[s.name] = (
                population.mirror(torch.zeros_like(step[0]), step),
                right.repeat_interleave(population.per_unit, 0),
            )
        views = evaluator.problem.layout.views(distribution.mean)
        means = {s.name: views[s.name] for s in self.low_rank_slots}
        sites = noise_sites(self.uses, means, means)

        def forward(
            perturbation: tuple[PerturbedTensors, dict[str, tuple[Tensor, Tensor]]], buffers: NamedTensors
        ) -> Tensor:
            weights, net_factors = perturbation

            def rule(
                apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, _: NoiseSource
            ) -> Tensor:
                left, right = net_factors[site.name]
                # An outer product at a time: rank is low, and a batched product of thin matrices is slow.
                output = apply(x, weight, bias)
                for a, c in zip((x @ right).split(1, -1), left.split(1, -1), strict=True):
                    output = torch.addcmul(output, a, c.mT)
                return output

            with Interception(sites, rule, RecordingSource()):
                return evaluator.forward({**means, **weights}, buffers, batch.x)

        outputs = evaluator.map_perturbations(
            forward, (whole_weights, factors), batch, population.stream(generation, units)
        )
        evaluation = evaluator.evaluate(outputs, parameters, batch.y)
        return Evaluation(evaluator.row_means(evaluation.values), evaluation.nll)

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
        blocks = list(self._blocks(batch))
        parts = exchange(
            generation, lambda units: self.evaluate_units(distribution, generation, units, batch).as_tensor(), blocks
        )
        table, arrival_mask = population.gather_arrived(parts, blocks)
        weights = (
            population.weigh_arrived(table[:, 0], arrival_mask, settings.shaping, settings.baseline) / population.size
        )
        odd, _ = population.odd_and_even(weights)
        by_mean, unused = torch.zeros_like(distribution.mean), torch.zeros_like(distribution.mean)
        scales = distribution.scales
        for units in population.blocks(self.numbers_per_unit):
            for s, left, right in self._factors(generation, units, distribution.mean):
                weighted_left = (left * odd[units, None, None]).permute(1, 0, 2).flatten(1)
                product = weighted_left @ right.permute(0, 2, 1).flatten(0, 1)
                by_mean[s.span] += product.flatten() * (self.estimator.rank**-0.5 / scales[s.start])
            self.whole_weights.add_slopes(
                distribution, generation, units, weights[population.perturbation_slice(units)], by_mean, unused
            )
        return SearchSlopes(by_mean, torch.zeros_like(distribution.scale)), table[:, 0], table[:, 1]

    def _blocks(self, batch: EvaluationBatch) -> Iterator[slice]:
        widest = max((s.shape[0] for s in self.low_rank_slots), default=1)
        # Activations come in twos, what goes into a unit and what comes out.
        numbers = self.evaluator.population.per_unit * max(self.numbers_per_unit, 2 * len(batch.y) * widest)
        return self.evaluator.population.blocks(numbers, parts=self.evaluator.parts)
