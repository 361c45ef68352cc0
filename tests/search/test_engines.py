"""Workers: the same results for any number of them, whatever becomes of them."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
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
            watch=lambda belief: {"watched": 1.0},  # which no worker needs
        )

    alone, helped = (fitted(engine) for engine in (engines.in_process(parts=16), engines.pool(2)))
    assert torch.equal(alone.posterior.mean, helped.posterior.mean)
    assert alone.record.history == helped.record.history


def deadly_in(folder: Path, times: int) -> for_workers.Deadly:
    (folder / "dead").mkdir()
    (folder / "driver").write_text(str(os.getpid()))
    return for_workers.Deadly(folder / "dead", times)


def calm() -> search.Found:
    return minimise(for_workers.sphere, [0.0, 0.0, 0.0], engine=engines.in_process(parts=16), **KEYS)


def test_ten_workers_that_are_killed_are_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    found = minimise(deadly_in(tmp_path, 10), [0.0, 0.0, 0.0], engine=engines.pool(2), **KEYS)
    assert len(list((tmp_path / "dead").iterdir())) >= 10
    assert [row["generation"] for row in found.trajectory] == [*range(1, KEYS["generations"] + 1)]
    assert torch.equal(found.path, calm().path)


def test_actors_of_ray_find_the_same_bits_and_may_be_killed(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    # Actors import what tests define.
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    try:
        found = minimise(deadly_in(tmp_path, 2), [0.0, 0.0, 0.0], engine=engines.ray(2), **KEYS)
        with pytest.raises(engines.EvaluationFailed, match="the oven is cold"):
            minimise(for_workers.raises, [1.0], engine=engines.ray(1), **KEYS)
    finally:
        ray.shutdown()
    assert len(list((tmp_path / "dead").iterdir())) >= 2
    assert torch.equal(found.path, calm().path)


@pytest.mark.parametrize(("ranks", "times"), [(1, 0), (2, 1)])
def test_ranks_of_torchrun_find_the_same_bits_and_may_be_killed(ranks: int, times: int, tmp_path: Path) -> None:
    deadly_in(tmp_path, times)
    (tmp_path / "driver").write_text("0")
    (tmp_path / "times").write_text(str(times))
    script = Path(for_workers.__file__)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--max-restarts", "3"]
    command += ["--master-port", str(free_port()), str(script), str(tmp_path)]
    path = os.pathsep.join(filter(None, [str(Path(doxa.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(list((tmp_path / "dead").iterdir())) >= times
    assert ast.literal_eval((tmp_path / "path").read_text()) == calm().path.tolist()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return int(one.getsockname()[1])


def test_torchrun_s_engine_needs_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(doxa.BadInput, match="torchrun --nproc-per-node"):
        minimise(for_workers.sphere, [1.0], engine=engines.torchrun(), **KEYS)


def test_what_a_lost_worker_was_at_can_be_left_out(tmp_path: Path) -> None:
    deadly = deadly_in(tmp_path, 1)
    found = minimise(deadly, [0.0, 0.0, 0.0], engine=engines.pool(2, lost="drop"), **KEYS)
    assert len(found.trajectory) == 12
    assert not torch.equal(found.path, calm().path)
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
