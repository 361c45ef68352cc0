"""Perturbations of activations: local reparameterisation for variational optimisation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, Diverged
from doxa.noise.interception import Interception
from doxa.noise.leaves import Leaf, noise_sites
from doxa.noise.source import NoiseRequest, PrecomputedSource, RecordingSource, precompute_noise
from doxa.random import streams
from doxa.random.philox import Stream
from doxa.search import shaping
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes
from doxa.search.engines.contract import Exchange
from doxa.search.engines.in_process import evaluate_in_process
from doxa.search.perturbations.tape import RecordedMap, Tape, backpropagate_row_weights
from doxa.search.perturbations.whole_weights import PerturbedTensors, WholeWeightPerturbations
from doxa.search.population_evaluator import (
    Evaluation,
    EvaluationBatch,
    NamedTensors,
    PopulationEvaluator,
    frozen_batch_norms,
)
from doxa.search.shaping import Shaping

MAX_NOISE_NUMBERS = 1 << 26  # numbers of noise that are held at a time
MIN_BLOCK_UNITS = 8  # perturbations of a block: each row of one is judged against the same row of the block's others


@dataclass(frozen=True)
class Local:
    """Every row of every perturbation has noise of its own, in the outputs of linear maps and convolutions.

    z = m + √v ζ,  m = f(a, mean),  v = f(a², scale²);
    ∂U/∂mean ≈ (1/NB) Σ_nb f_b(z_n) ζ/√v · ∂m/∂mean,  ∂U/∂scale² ≈ (1/NB) Σ_nb f_b(z_n) (ζ² − 1)/2v · ∂v/∂scale²

    Each row is its own perturbation of all weights, judged by its own loss against the same row's other losses: the
    noise of the estimate falls with N times B. Nothing is differentiated but the linear maps themselves: activations
    may be steps, and the loss may count errors. It needs a loss of each row; of convolutions and tokens it drops the
    correlation between positions. However many parts an engine asks for, eight perturbations or more are judged
    together. Weights that no linear map or convolution uses once are perturbed as in `weight_space`, and BatchNorm goes
    by its running statistics, since a row's output must not depend on others' noise.
    Kingma, Salimans & Welling (2015), Variational dropout and the local reparameterization trick.
    """

    shaping: Shaping = shaping.raw
    baseline: bool = True  # whether a weight is that of a row's loss against its others

    name = "local"
    antithetic = False

    def start(self, evaluator: PopulationEvaluator) -> LocalEstimator:
        if not evaluator.by_row:
            raise BadInput(
                "local perturbations need a loss for each row, and the objective gives one number for all rows: choose "
                "doxa.search.weight_space() or low_rank(), or an objective that gives a number a row"
            )
        return LocalEstimator(self, evaluator)


class LocalEstimator:
    """A net with noise in its maps, all perturbations of it as one program where it can be."""

    def __init__(self, estimator: Local, evaluator: PopulationEvaluator) -> None:
        self.estimator, self.evaluator = estimator, evaluator
        layout, uses = evaluator.problem.layout, evaluator.problem.uses
        single = {k: use for k, use in uses.single_use.items() if use.row_axes == (0,)}
        self.uses = replace(uses, single_use=single)
        self.local_slots = [s for s in layout.random_slots if s.name in single]
        self.whole_weights = WholeWeightPerturbations(
            [s for s in layout.slots if s not in self.local_slots], evaluator.population
        )
        self.noise = {s.name: "local search" if s in self.local_slots else "search" for s in layout.slots}
        # One product is enough for the variances where a map's weights share a scale, in the way that groups do.
        self.ungrouped = all(use.groups == 1 and not use.transposed for use in single.values())
        self.noise_requests: dict[Any, list[NoiseRequest]] = {}

    def estimate(
        self,
        distribution: SearchDistribution,
        generation: int,
        batch: EvaluationBatch,
        exchange: Exchange = evaluate_in_process,
    ) -> tuple[SearchSlopes, Tensor, Tensor]:
        """The slopes, and the mean value and NLL of each perturbation that arrived.

        What a block tells of the slopes travels as a whole: to make it again would be to evaluate again.
        """
        blocks, size = self._blocks(distribution, batch), len(distribution.mean)
        parts = exchange(generation, lambda units: self.evaluate_units(distribution, generation, units, batch), blocks)
        arrived = [part.to(distribution.mean.device) for part in parts if part is not None]
        if not arrived:
            raise Diverged("no perturbation of the generation arrived: every worker was lost at once")
        by_mean, by_log = arrived[0][: 2 * size].clone().split(size)
        for part in arrived[1:]:
            by_mean += part[:size]
            by_log += part[size : 2 * size]
        values, nll = torch.cat([part[2 * size :].view(2, -1) for part in arrived], 1)
        slopes = SearchSlopes(by_mean.div_(len(values)), distribution.by_group(by_log.div_(len(values))))
        return slopes, values, nll

    def evaluate_units(
        self, distribution: SearchDistribution, generation: int, units: slice, batch: EvaluationBatch
    ) -> Tensor:
        """What the perturbations of some units tell, added up: by mean [P], by log scale [P], values [n], NLL [n]."""
        by_mean, by_log = torch.zeros_like(distribution.mean), torch.zeros_like(distribution.mean)
        with frozen_batch_norms(self.evaluator.problem.net):
            means, squares = self._leaves(distribution)
            evaluation, recorded = self._forward(distribution, generation, units, batch, means, squares)
        shaped = self.evaluator.population.shape_values(
            evaluation.values, self.estimator.shaping, self.estimator.baseline
        )
        weights = shaped / len(batch.y)
        slopes_by_map = backpropagate_row_weights(recorded, weights)
        for slot in self.local_slots:
            by_mean[slot.span] += _gradient(means[slot.name])
            by_log[slot.span] += 2 * _gradient(squares[slot.name]) * squares[slot.name].detach().flatten()
        first = {s.name: s.start for s in self.local_slots}
        for name, slope in slopes_by_map.items():  # it belongs to the scale that all weights of the map share
            by_log[first[name]] += slope
        self.whole_weights.add_slopes(distribution, generation, units, weights.sum(1), by_mean, by_log)
        return torch.cat([by_mean, by_log, evaluation.values.mean(1), evaluation.nll])

    def _blocks(self, distribution: SearchDistribution, batch: EvaluationBatch) -> Sequence[slice]:
        """All perturbations together unless they are too many, never a few alone: a baseline matters more than room."""
        row_noise_size = sum(prod(request.shape) for request in self._noise_requests(distribution, batch))
        whole_weight_size = sum(s.stop - s.start for s in self.whole_weights.slots)
        return list(
            self.evaluator.population.blocks(
                row_noise_size + whole_weight_size, MAX_NOISE_NUMBERS, self.evaluator.parts, MIN_BLOCK_UNITS
            )
        )

    def _one_scale_per_map(self, distribution: SearchDistribution) -> bool:
        """Whether all weights of each map share a scale, biases among them."""
        if distribution.groups is None or not distribution.shared or not self.ungrouped:
            return False
        ends, group_by_module = [*accumulate(distribution.groups)], dict[str, int]()
        groups = [(slot.module, bisect_right(ends, slot.start)) for slot in self.local_slots]
        return all(group_by_module.setdefault(module, group) == group for module, group in groups)

    def _leaves(self, distribution: SearchDistribution) -> tuple[Leaf, Leaf]:
        layout = self.evaluator.problem.layout
        one_scale_per_map = self._one_scale_per_map(distribution)
        means = {k: v.detach().requires_grad_() for k, v in layout.views(distribution.mean).items()}
        squares = {
            k: v.detach().requires_grad_(not one_scale_per_map)
            for k, v in layout.views(distribution.scales.square()).items()
        }
        return means, squares

    def _forward(
        self,
        distribution: SearchDistribution,
        generation: int,
        units: slice,
        batch: EvaluationBatch,
        means: Leaf,
        squares: Leaf,
    ) -> tuple[Evaluation, list[RecordedMap]]:
        evaluator = self.evaluator
        stream = Stream(evaluator.population.seeds[units], generation, streams.SEARCH_ROWS)
        whole_weights, parameters = self.whole_weights.points(distribution, generation, units)
        sites = noise_sites(self.uses, means, squares)
        one_scale_per_map = self._one_scale_per_map(distribution)
        squared_scales = (
            {site.name: squares[site.name].detach().flatten()[0] for site in sites} if one_scale_per_map else None
        )
        noise = precompute_noise(self._noise_requests(distribution, batch), [(stream, 1.0)])
        names: list[str] = []

        def forward(
            perturbation: tuple[PerturbedTensors, list[Tensor]], buffers: NamedTensors
        ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
            (weights, zeta), tape = perturbation, Tape(squared_scales)
            with Interception(sites, tape.rule, PrecomputedSource(zeta)):
                output = evaluator.forward({**means, **weights}, buffers, batch.x)
            names[:] = [m.name for m in tape.recorded]
            return output.detach(), [(m.mean, m.variance) for m in tape.recorded]

        with torch.enable_grad():
            outputs, pairs = evaluator.map_perturbations(forward, (whole_weights, noise), batch, stream)
        recorded = [
            RecordedMap(k, mean, variance, z) for k, (mean, variance), z in zip(names, pairs, noise, strict=True)
        ]
        with torch.no_grad():
            return evaluator.evaluate(outputs, parameters, batch.y), recorded

    def _noise_requests(self, distribution: SearchDistribution, batch: EvaluationBatch) -> list[NoiseRequest]:
        """What noise a pass over so many rows asks for, found by listening to one."""
        key = tuple(batch.y.shape)
        if key not in self.noise_requests:
            recorder, (means, squares) = RecordingSource(), self._leaves(distribution)
            sites = noise_sites(self.uses, means, squares)
            buffers = {k: b.clone() for k, b in batch.buffers.items()}
            interception = Interception(sites, Tape(None).rule, recorder)
            with torch.no_grad(), frozen_batch_norms(self.evaluator.problem.net), interception:
                self.evaluator.forward(means, buffers, batch.x)
            self.noise_requests[key] = recorder.requests
        return self.noise_requests[key]


def _gradient(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf).flatten() if leaf.grad is None else leaf.grad.flatten()
