"""Blocks of a population: even, small enough for memory, and for local perturbations never a few alone."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from doxa import likelihoods, search
from doxa.search.distribution.gaussian import SearchDistribution
from doxa.search.engines.contract import Evaluate
from doxa.search.objectives import Objective
from doxa.search.perturbations.local import MIN_BLOCK_UNITS, LocalEstimator
from doxa.search.perturbations.low_rank import LowRankEstimator
from doxa.search.perturbations.population import MAX_BLOCK_NUMBERS, Population, make_population
from doxa.search.perturbations.whole_weights import WholeWeightPerturbations
from doxa.search.population_evaluator import EvaluationBatch, PopulationEvaluator
from training_context import single_net_problem

# By its name the package has the estimator, not the module.
local = importlib.import_module("doxa.search.perturbations.local")


def block_lengths(blocks: list[slice]) -> list[int]:
    """How many units each has, of blocks that follow one another."""
    assert [b.stop for b in blocks[:-1]] == [b.start for b in blocks[1:]]
    return [b.stop - b.start for b in blocks]


@pytest.mark.parametrize("size", [2, 7, 32, 33, 100])
@pytest.mark.parametrize("parts", [1, 4, 16, 32])
@pytest.mark.parametrize("most", [3, 40, 1000])
@pytest.mark.parametrize("least", [1, MIN_BLOCK_UNITS])
def test_blocks_are_even_and_keep_to_their_bounds(size: int, parts: int, most: int, least: int) -> None:
    block_sizes = block_lengths(list(make_population(size, False, (0,)).blocks(1, most, parts, least)))
    assert sum(block_sizes) == size
    assert max(block_sizes) - min(block_sizes) <= 1
    assert min(block_sizes) >= min(least, size)
    if least == 1:
        assert max(block_sizes) <= most
        assert len(block_sizes) >= min(parts, size)


def test_nothing_is_asked_for_in_no_blocks() -> None:
    empty_population = Population(0, False, torch.empty(0, dtype=torch.int64))
    assert list(empty_population.blocks(3, parts=4)) == []


def make_evaluator(net: nn.Module, x: Tensor, size: int, parts: int, antithetic: bool = False) -> PopulationEvaluator:
    problem = single_net_problem(net, x, likelihoods.categorical())
    return PopulationEvaluator(
        problem, make_population(size, antithetic, (0, "blocks")), Objective(None), True, True, parts
    )


def search_distribution(evaluator: PopulationEvaluator) -> SearchDistribution:
    return SearchDistribution(evaluator.problem.start[0], torch.tensor([0.05]), (evaluator.problem.layout.size,))


def mlp() -> tuple[nn.Module, EvaluationBatch]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10))
    return net, EvaluationBatch(torch.randn(64, 20), torch.randint(10, (64,)), {})


def local_blocks(evaluator: PopulationEvaluator, batch: EvaluationBatch) -> list[int]:
    """The sizes of the blocks that local perturbations are asked for in."""
    requested_blocks: list[slice] = []

    def exchange(generation: int, evaluate: object, blocks: list[slice]) -> list[Tensor | None]:
        requested_blocks.extend(blocks)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        LocalEstimator(search.local(), evaluator).estimate(search_distribution(evaluator), 0, batch, exchange)  # type: ignore[arg-type]
    return block_lengths(requested_blocks)


def test_slopes_by_local_perturbations_vary_no_more_for_being_divided() -> None:
    net, batch = mlp()

    def variance(parts: int) -> float:
        evaluator = make_evaluator(net, batch.x, 33, parts)
        estimator, distribution = LocalEstimator(search.local(), evaluator), search_distribution(evaluator)
        return float(
            torch.stack([estimator.estimate(distribution, g, batch)[0].by_mean for g in range(40)]).var(0).sum()
        )

    undivided = variance(1)
    assert all(variance(parts) < 1.3 * undivided for parts in (16, 32, 33))


def test_local_perturbations_stay_together_where_memory_would_part_them(monkeypatch: pytest.MonkeyPatch) -> None:
    net, batch = mlp()
    monkeypatch.setattr(local, "MAX_NOISE_NUMBERS", 1)
    assert local_blocks(make_evaluator(net, batch.x, 33, 1), batch) == [8, 8, 8, 9]
    assert local_blocks(make_evaluator(net, batch.x, 5, 16), batch) == [5]


def test_slopes_by_local_perturbations_are_the_mean_of_what_arrived() -> None:
    net, batch = mlp()
    evaluator = make_evaluator(net, batch.x, 32, 4)
    estimator, distribution = LocalEstimator(search.local(), evaluator), search_distribution(evaluator)

    def losing_the_second(generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        return [None if k == 1 else evaluate(block) for k, block in enumerate(blocks)]

    slopes, values, nll = estimator.estimate(distribution, 0, batch, losing_the_second)
    arrived = [estimator.evaluate_units(distribution, 0, slice(k, k + 8), batch) for k in (0, 16, 24)]
    size = len(distribution.mean)
    torch.testing.assert_close(slopes.by_mean, torch.stack([part[:size] for part in arrived]).sum(0) / 24)
    by_log = torch.stack([part[size : 2 * size] for part in arrived]).sum(0) / 24
    torch.testing.assert_close(slopes.by_log_scale, distribution.by_group(by_log))
    assert len(values) == len(nll) == 24


def test_room_for_local_perturbations_counts_every_position_of_a_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
    batch = EvaluationBatch(torch.randn(5, 1, 6, 6), torch.randint(2, (5,)), {})
    numbers = 5 * (3 * 4 * 4 + 2)  # of one perturbation
    monkeypatch.setattr(local, "MAX_NOISE_NUMBERS", 10 * numbers)
    assert local_blocks(make_evaluator(net, batch.x, 40, 1), batch) == [10] * 4
    monkeypatch.setattr(local, "MAX_NOISE_NUMBERS", 10 * numbers - 1)
    assert local_blocks(make_evaluator(net, batch.x, 40, 1), batch) == [8] * 5


def test_a_low_rank_step_makes_room_for_weights_that_are_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(1, 16, 5), nn.Flatten(), nn.Linear(16, 2))
    batch = EvaluationBatch(torch.randn(1, 1, 5), torch.randint(2, (1,)), {})
    evaluator = make_evaluator(net, batch.x, 64, 1, antithetic=True)
    estimator = LowRankEstimator(search.low_rank(), evaluator)
    low_rank_numbers, whole_weight_numbers = 16 + 2, 16 * 5 + 16 + 2
    monkeypatch.setitem(MAX_BLOCK_NUMBERS, "cpu", 4 * (low_rank_numbers + whole_weight_numbers))
    block_sizes: list[int] = []

    def add_slopes(
        self: WholeWeightPerturbations,
        distribution: SearchDistribution,
        generation: int,
        units: slice,
        *tensors: Tensor,
    ) -> None:
        block_sizes.append(units.stop - units.start)

    monkeypatch.setattr(WholeWeightPerturbations, "add_slopes", add_slopes)
    estimator.estimate(search_distribution(evaluator), 0, batch)
    assert block_sizes == [4] * 8
