"""Workers: the same results for any number of them, whatever becomes of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

import doxa
import for_workers
from doxa import search
from doxa.search import engines, minimise


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """As many as a worker has: results depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


KEYS: dict[str, Any] = {"generations": 12, "size": 32}


def test_one_two_or_four_workers_find_the_same_bits() -> None:
    alone = minimise(for_workers.sphere, [3.0, -2.0, 0.5], engine=engines.in_process(parts=16), **KEYS)
    for workers in (1, 2, 4):
        found = minimise(for_workers.sphere, [3.0, -2.0, 0.5], engine=engines.pool(workers), **KEYS)
        assert torch.equal(found.path, alone.path)
        assert torch.equal(found.best, alone.best)
        assert found.trajectory == alone.trajectory


ESTIMATORS = {"local": search.local(), "weight space": search.weight_space(), "low rank": search.low_rank()}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_workers_learn_nets_to_the_same_bits(estimator: Any) -> None:
    def fitted(engine: Any) -> doxa.Belief:
        torch.manual_seed(0)
        return doxa.fit(
            doxa.nets.mlp(2, (16, 16), 2),
            for_workers.rows(),
            learner=search.learner(estimator, size=32, engine=engine),
            likelihood=doxa.likelihoods.categorical(),
            epochs=3,
            batch_size=32,
            lr=0.01,
            progress=False,
        )

    alone, helped = (fitted(engine) for engine in (engines.in_process(parts=16), engines.pool(2)))
    assert torch.equal(alone.posterior.mean, helped.posterior.mean)
    assert alone.record.history == helped.record.history


def test_workers_that_are_killed_are_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "dead").mkdir()
    (tmp_path / "driver").write_text(str(os.getpid()))
    deadly = for_workers.Deadly(tmp_path / "dead", times=3)
    found = minimise(deadly, [0.0, 0.0, 0.0], engine=engines.pool(2), **KEYS)
    calm = minimise(for_workers.sphere, [0.0, 0.0, 0.0], engine=engines.in_process(parts=16), **KEYS)
    assert len(list((tmp_path / "dead").iterdir())) >= 3
    assert torch.equal(found.path, calm.path)


def test_what_a_lost_worker_was_at_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "dead").mkdir()
    (tmp_path / "driver").write_text(str(os.getpid()))
    deadly = for_workers.Deadly(tmp_path / "dead", times=1)
    found = minimise(deadly, [0.0, 0.0, 0.0], engine=engines.pool(2, lost="drop"), **KEYS)
    calm = minimise(for_workers.sphere, [0.0, 0.0, 0.0], engine=engines.in_process(parts=16), **KEYS)
    assert len(found.trajectory) == 12
    assert not torch.equal(found.path, calm.path)
    assert found.value < 0.5


def test_an_error_in_a_worker_is_told_and_changes_nothing() -> None:
    with pytest.raises(engines.EvaluationFailed, match="the oven is cold"):
        minimise(for_workers.raises, [1.0], engine=engines.pool(2), **KEYS)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: engines.pool(0), "workers must be at least 1"),
        (lambda: engines.pool(2, lost="cry"), 'lost must be "reissue" or "drop"'),
        (lambda: minimise(lambda w: w.sum(), [1.0], engine=engines.pool(1), **KEYS), "at the top of a module"),
        (lambda: search.learner(engine="pool"), "one of doxa.search.engines"),
    ],
)
def test_bad_input_is_named(call: Any, says: str) -> None:
    with pytest.raises(doxa.BadInput, match=says):
        call()
