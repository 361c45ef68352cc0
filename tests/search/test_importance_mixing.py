"""Importance mixing: what is kept and what is new are together as if drawn afresh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import doxa
from doxa.search import Search, Settings, functions, minimise
from doxa.search.distribution.gaussian import Gaussian
from doxa.search.distribution.importance_mixing import Memory, mixed

OLD = Gaussian(torch.tensor([0.0, 1.0]).double(), torch.tensor([1.0, 0.5]).double())
NEW = Gaussian(torch.tensor([0.3, 0.8]).double(), torch.tensor([0.9, 0.6]).double())


def old(seed: int, many: int = 60) -> Memory:
    points = OLD.mean + OLD.scales * torch.randn(many, 2, generator=torch.Generator().manual_seed(seed)).double()
    return Memory(OLD, points, points.sum(1))


@pytest.mark.parametrize("arrived", [60, 30], ids=["all", "half of the last generation lost"])
def test_all_points_together_are_distributed_as_the_new_ones(arrived: int) -> None:
    made = [mixed(old(s, arrived), NEW, 60, 0.1, torch.tensor([s]), 1) for s in range(1500)]
    points = torch.cat([m.points for m in made])
    assert len(points) == 60 * len(made)
    error = len(points) ** -0.5
    # Points of one generation are independent; kept and new ones make up the new distribution exactly.
    assert ((points.mean(0) - NEW.mean) / NEW.scales).abs().max() < 4 * error
    assert ((points - NEW.mean).div(NEW.scales).square().mean(0) - 1).abs().max() < 4 * 2**0.5 * error
    assert 0.5 < sum(len(m.values) for m in made) / (arrived * len(made)) < 0.9


def test_values_stay_with_their_points_and_enough_is_new() -> None:
    for refresh in (0.1, 0.5, 1.0):
        made = mixed(old(0), NEW, 60, refresh, torch.tensor([7]), 3)
        assert made.points.shape == (60, 2)
        torch.testing.assert_close(made.values, made.points[: len(made.values)].sum(1))
        again = mixed(old(0), NEW, 60, refresh, torch.tensor([7]), 3)
        assert torch.equal(made.points, again.points)
    assert len(made.values) == 0


def test_a_search_needs_fewer_evaluations() -> None:
    calls = 0

    def f(w: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += len(w)
        return functions.himmelblau(w)

    found = minimise(f, [0.0, 0.0], batched=True, antithetic=False, refresh=0.1)
    assert found.value < 1e-8
    assert calls < 0.8 * 50 * len(found.trajectory)


def test_it_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"antithetic": False, "refresh": 0.2}
    whole = minimise(functions.sphere, [1.0, 2.0], generations=20, **keys)
    minimise(functions.sphere, [1.0, 2.0], generations=9, checkpoint=tmp_path, **keys)
    again = minimise(functions.sphere, [1.0, 2.0], generations=20, checkpoint=tmp_path, resume=True, **keys)
    assert torch.equal(whole.path, again.path)
    one = Search([1.0, 2.0], Settings(**keys))
    one.tell(functions.sphere(one.ask()))
    other = Search([1.0, 2.0], Settings(**keys))
    other.load(one.state())
    assert torch.equal(one.ask(), other.ask())


def test_what_was_lost_is_missed_for_one_generation_alone() -> None:
    search = Search([1.0, 2.0], Settings(antithetic=False, refresh=0.2, size=40))
    search.tell(functions.sphere(search.ask()))
    for lost in (True, False, True, False):
        points = search.ask()
        here = torch.ones(len(points), dtype=torch.bool)
        here[: len(points) // 2] = not lost
        search.tell(functions.sphere(points[here]), here)
        assert search.memory is not None
        assert search.mixed is not None
        assert len(search.memory.points) == 40 - int((~here).sum())
        assert len(search.mixed.points) == 40


def writes(w: torch.Tensor) -> torch.Tensor:
    value = functions.sphere(w - 1)
    w.zero_()
    return value


@pytest.mark.parametrize("batched", [False, True])
def test_an_objective_that_writes_into_its_argument_does_no_harm(batched: bool) -> None:
    keys: dict[str, Any] = {"antithetic": False, "refresh": 0.2, "generations": 10, "batched": batched}
    plain = minimise(lambda w: functions.sphere(w - 1), [3.0, 3.0], **keys)
    found = minimise(writes, [3.0, 3.0], **keys)
    assert torch.equal(found.path, plain.path)
    assert torch.equal(found.best, plain.best)
    assert torch.equal(found.mean, plain.mean)


def test_the_values_that_were_told_belong_to_the_search() -> None:
    search = Search([1.0, 2.0], Settings(antithetic=False, refresh=0.2))
    values = functions.sphere(search.ask())
    search.tell(values)
    values.zero_()
    assert search.memory is not None
    assert bool((search.memory.values > 0).all())


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
