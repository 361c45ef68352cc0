"""Blocks of a population: even, small enough for memory, and for local perturbations never a few alone."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from at_work import posed
from doxa import likelihoods, search
from doxa.search.distribution.gaussian import Gaussian
from doxa.search.engines.contract import Evaluate
from doxa.search.objectives import Objective
from doxa.search.perturbations.apart import Apart
from doxa.search.perturbations.local import LEAST, LocalAtWork
from doxa.search.perturbations.low_rank import LowRankAtWork
from doxa.search.perturbations.population import BLOCKS, Population, population
from doxa.search.scene import Rows, Scene

# By its name the package has the estimator, not the module.
local = importlib.import_module("doxa.search.perturbations.local")


def sizes(blocks: list[slice]) -> list[int]:
    """How many units each has, of blocks that follow one another."""
    assert [b.stop for b in blocks[:-1]] == [b.start for b in blocks[1:]]
    return [b.stop - b.start for b in blocks]


@pytest.mark.parametrize("size", [2, 7, 32, 33, 100])
@pytest.mark.parametrize("parts", [1, 4, 16, 32])
@pytest.mark.parametrize("most", [3, 40, 1000])
@pytest.mark.parametrize("least", [1, LEAST])
def test_blocks_are_even_and_keep_to_their_bounds(size: int, parts: int, most: int, least: int) -> None:
    found = sizes(list(population(size, False, (0,)).blocks(1, most, parts, least)))
    assert sum(found) == size
    assert max(found) - min(found) <= 1
    assert min(found) >= min(least, size)
    if least == 1:
        assert max(found) <= most
        assert len(found) >= min(parts, size)


def test_nothing_is_asked_for_in_no_blocks() -> None:
    nobody = Population(0, False, torch.empty(0, dtype=torch.int64))
    assert list(nobody.blocks(3, parts=4)) == []


def scene(net: nn.Module, x: Tensor, size: int, parts: int, antithetic: bool = False) -> Scene:
    problem = posed(net, x, likelihoods.categorical())
    return Scene(problem, population(size, antithetic, (0, "blocks")), Objective(None), True, True, parts)


def looking(own: Scene) -> Gaussian:
    return Gaussian(own.problem.start[0], torch.tensor([0.05]), (own.problem.layout.size,))


def mlp() -> tuple[nn.Module, Rows]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10))
    return net, Rows(torch.randn(64, 20), torch.randint(10, (64,)), {})


def local_blocks(own: Scene, rows: Rows) -> list[int]:
    """The sizes of the blocks that local perturbations are asked for in."""
    found: list[slice] = []

    def exchange(generation: int, evaluate: object, blocks: list[slice]) -> list[Tensor | None]:
        found.extend(blocks)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        LocalAtWork(search.local(), own).estimate(looking(own), 0, rows, exchange)  # type: ignore[arg-type]
    return sizes(found)


def test_slopes_by_local_perturbations_vary_no_more_for_being_divided() -> None:
    net, rows = mlp()

    def variance(parts: int) -> float:
        own = scene(net, rows.x, 33, parts)
        work, at = LocalAtWork(search.local(), own), looking(own)
        return float(torch.stack([work.estimate(at, g, rows)[0].by_mean for g in range(40)]).var(0).sum())

    whole = variance(1)
    assert all(variance(parts) < 1.3 * whole for parts in (16, 32, 33))


def test_local_perturbations_stay_together_where_memory_would_part_them(monkeypatch: pytest.MonkeyPatch) -> None:
    net, rows = mlp()
    monkeypatch.setattr(local, "AT_ONCE", 1)
    assert local_blocks(scene(net, rows.x, 33, 1), rows) == [8, 8, 8, 9]
    assert local_blocks(scene(net, rows.x, 5, 16), rows) == [5]


def test_slopes_by_local_perturbations_are_the_mean_of_what_arrived() -> None:
    net, rows = mlp()
    own = scene(net, rows.x, 32, 4)
    work, at = LocalAtWork(search.local(), own), looking(own)

    def losing_the_second(generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        return [None if k == 1 else evaluate(block) for k, block in enumerate(blocks)]

    slopes, values, nll = work.estimate(at, 0, rows, losing_the_second)
    arrived = [work.answers(at, 0, slice(k, k + 8), rows) for k in (0, 16, 24)]
    size = len(at.mean)
    torch.testing.assert_close(slopes.by_mean, torch.stack([part[:size] for part in arrived]).sum(0) / 24)
    by_log = torch.stack([part[size : 2 * size] for part in arrived]).sum(0) / 24
    torch.testing.assert_close(slopes.by_log_scale, at.by_group(by_log))
    assert len(values) == len(nll) == 24


def test_room_for_local_perturbations_counts_every_position_of_a_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
    rows = Rows(torch.randn(5, 1, 6, 6), torch.randint(2, (5,)), {})
    numbers = 5 * (3 * 4 * 4 + 2)  # of one perturbation
    monkeypatch.setattr(local, "AT_ONCE", 10 * numbers)
    assert local_blocks(scene(net, rows.x, 40, 1), rows) == [10] * 4
    monkeypatch.setattr(local, "AT_ONCE", 10 * numbers - 1)
    assert local_blocks(scene(net, rows.x, 40, 1), rows) == [8] * 5


def test_a_low_rank_step_makes_room_for_weights_that_are_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(1, 16, 5), nn.Flatten(), nn.Linear(16, 2))
    rows = Rows(torch.randn(1, 1, 5), torch.randint(2, (1,)), {})
    own = scene(net, rows.x, 64, 1, antithetic=True)
    work = LowRankAtWork(search.low_rank(), own)
    thin, whole = 16 + 2, 16 * 5 + 16 + 2
    monkeypatch.setitem(BLOCKS, "cpu", 4 * (thin + whole))
    drawn: list[int] = []

    def add(self: Apart, at: Gaussian, generation: int, units: slice, *more: Tensor) -> None:
        drawn.append(units.stop - units.start)

    monkeypatch.setattr(Apart, "add", add)
    work.estimate(looking(own), 0, rows)
    assert drawn == [4] * 8
