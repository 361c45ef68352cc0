"""Importance mixing: what is kept and what is new are together as if drawn afresh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import doxa
from doxa.search import Search, Settings, functions, minimise
from doxa.search.distribution.gaussian import SearchDistribution
from doxa.search.distribution.importance_mixing import PreviousGeneration, mix_generations

OLD = SearchDistribution(torch.tensor([0.0, 1.0]).double(), torch.tensor([1.0, 0.5]).double())
NEW = SearchDistribution(torch.tensor([0.3, 0.8]).double(), torch.tensor([0.9, 0.6]).double())


def previous_generation(seed: int, count: int = 60) -> PreviousGeneration:
    points = OLD.mean + OLD.scales * torch.randn(count, 2, generator=torch.Generator().manual_seed(seed)).double()
    return PreviousGeneration(OLD, points, points.sum(1))


@pytest.mark.parametrize("arrived", [60, 30], ids=["all", "half of the last generation lost"])
def test_all_points_together_are_distributed_as_the_new_ones(arrived: int) -> None:
    generations = [
        mix_generations(previous_generation(s, arrived), NEW, 60, 0.1, torch.tensor([s]), 1) for s in range(1500)
    ]
    points = torch.cat([generation.points for generation in generations])
    assert len(points) == 60 * len(generations)
    error = len(points) ** -0.5
    # Points of one generation are independent; kept and new ones make up the new distribution exactly.
    assert ((points.mean(0) - NEW.mean) / NEW.scales).abs().max() < 4 * error
    assert ((points - NEW.mean).div(NEW.scales).square().mean(0) - 1).abs().max() < 4 * 2**0.5 * error
    assert 0.5 < sum(len(generation.values) for generation in generations) / (arrived * len(generations)) < 0.9


def test_values_stay_with_their_points_and_enough_is_new() -> None:
    for refresh in (0.1, 0.5, 1.0):
        generation = mix_generations(previous_generation(0), NEW, 60, refresh, torch.tensor([7]), 3)
        assert generation.points.shape == (60, 2)
        torch.testing.assert_close(generation.values, generation.points[: len(generation.values)].sum(1))
        again = mix_generations(previous_generation(0), NEW, 60, refresh, torch.tensor([7]), 3)
        assert torch.equal(generation.points, again.points)
    assert len(generation.values) == 0


def test_a_search_needs_fewer_evaluations() -> None:
    calls = 0

    def f(w: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += len(w)
        return functions.himmelblau(w)

    result = minimise(f, [0.0, 0.0], batched=True, antithetic=False, refresh=0.1)
    assert result.value < 1e-8
    assert calls < 0.8 * 50 * len(result.trajectory)


def test_it_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    options: dict[str, Any] = {"antithetic": False, "refresh": 0.2}
    uninterrupted = minimise(functions.sphere, [1.0, 2.0], generations=20, **options)
    minimise(functions.sphere, [1.0, 2.0], generations=9, checkpoint=tmp_path, **options)
    resumed = minimise(functions.sphere, [1.0, 2.0], generations=20, checkpoint=tmp_path, resume=True, **options)
    assert torch.equal(uninterrupted.path, resumed.path)
    search = Search([1.0, 2.0], Settings(**options))
    search.tell(functions.sphere(search.ask()))
    loaded_search = Search([1.0, 2.0], Settings(**options))
    loaded_search.load(search.state())
    assert torch.equal(search.ask(), loaded_search.ask())


def test_what_was_lost_is_missed_for_one_generation_alone() -> None:
    search = Search([1.0, 2.0], Settings(antithetic=False, refresh=0.2, size=40))
    search.tell(functions.sphere(search.ask()))
    for lost in (True, False, True, False):
        points = search.ask()
        arrival_mask = torch.ones(len(points), dtype=torch.bool)
        arrival_mask[: len(points) // 2] = not lost
        search.tell(functions.sphere(points[arrival_mask]), arrival_mask)
        assert search.previous_generation is not None
        assert search.mixed_generation is not None
        assert len(search.previous_generation.points) == 40 - int((~arrival_mask).sum())
        assert len(search.mixed_generation.points) == 40


def writes_into_argument(w: torch.Tensor) -> torch.Tensor:
    value = functions.sphere(w - 1)
    w.zero_()
    return value


@pytest.mark.parametrize("batched", [False, True])
def test_an_objective_that_writes_into_its_argument_does_no_harm(batched: bool) -> None:
    options: dict[str, Any] = {"antithetic": False, "refresh": 0.2, "generations": 10, "batched": batched}
    plain = minimise(lambda w: functions.sphere(w - 1), [3.0, 3.0], **options)
    result = minimise(writes_into_argument, [3.0, 3.0], **options)
    assert torch.equal(result.path, plain.path)
    assert torch.equal(result.best, plain.best)
    assert torch.equal(result.mean, plain.mean)


def test_the_values_that_were_told_belong_to_the_search() -> None:
    search = Search([1.0, 2.0], Settings(antithetic=False, refresh=0.2))
    values = functions.sphere(search.ask())
    search.tell(values)
    values.zero_()
    assert search.previous_generation is not None
    assert bool((search.previous_generation.values > 0).all())


def test_a_state_from_before_the_first_generation_asks_for_all_points_again() -> None:
    search = Search([1.0, 2.0], Settings(antithetic=False, refresh=0.2))
    state, first = search.state(), search.ask()
    search.tell(functions.sphere(first))
    search.load(state)
    assert torch.equal(search.ask(), first)


@pytest.mark.parametrize(("keys", "says"), [({"refresh": 0.2}, "antithetic=False"), ({"refresh": 0.0}, "above 0")])
def test_bad_input_is_named(keys: Any, says: str) -> None:
    with pytest.raises(doxa.BadInput, match=says):
        Settings(**keys)
