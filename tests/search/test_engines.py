"""Workers: the same results for any number of them, whatever becomes of them."""

from __future__ import annotations

import ast
import importlib
import os
import socket
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

import doxa
import for_workers
from doxa import search
from doxa.search import engines, minimise
from doxa.search.engines.torchrun import Ranks


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


def test_actors_of_ray_find_the_same_bits_and_may_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    # Actors import what tests define.
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    try:
        found = minimise(deadly_in(tmp_path, 2), [0.0, 0.0, 0.0], engine=engines.ray(2), **KEYS)
        with pytest.raises(engines.EvaluationFailed, match="the oven is cold"):
            minimise(for_workers.raises, [1.0], engine=engines.ray(1), **KEYS)
        # What was written after the cluster was started cannot be imported there.
        (tmp_path / "elsewhere.py").write_text("def f(w):\n    return w.sum()\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(engines.EvaluationFailed, match=r"could open its copy.*elsewhere"):
            minimise(importlib.import_module("elsewhere").f, [1.0], engine=engines.ray(1), **KEYS)
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


BROKEN: Any = pytest.mark.parametrize(
    ("how", "kind", "says"),
    [
        ("raises", engines.EvaluationFailed, "ValueError: the oven is cold"),
        ("shape", doxa.BadInput, "the objective must give numbers"),
        ("no number", doxa.Diverged, "not finite at any of 32"),
    ],
)


@BROKEN
def test_a_generation_that_fails_in_a_worker_is_told_and_the_search_goes_on_from_before_it(
    how: str, kind: Any, says: str, tmp_path: Path
) -> None:
    mended, start = tmp_path / "mended", [3.0, -2.0, 0.5]
    # One worker takes all blocks: from its fourth generation on, it finds no number.
    f = for_workers.NoNumber(mended, 96) if how == "no number" else for_workers.Breaks(mended, how)
    keys: dict[str, Any] = {**KEYS, "checkpoint": tmp_path / "run", "checkpoint_every": 100}
    with pytest.raises(kind, match=says) as error:
        minimise(f, start, engine=engines.pool(1), **keys)
    said = " ".join([str(error.value), *getattr(error.value, "__notes__", [])])
    assert "generations were done before, and are kept in" in said
    if kind is not doxa.BadInput:
        assert 1 <= len(error.value.found.trajectory) < 12
        assert error.value.found.path.isfinite().all()
    mended.touch()
    again = minimise(f, start, engine=engines.in_process(16), resume=True, **keys)
    whole = minimise(for_workers.sphere, start, engine=engines.in_process(16), **KEYS)
    assert torch.equal(again.path, whole.path)


@pytest.mark.parametrize(
    ("how", "kind", "says", "engine"),
    [
        ("raises", (engines.EvaluationFailed, ValueError), "the oven is cold", engines.in_process(16)),
        ("raises", (engines.EvaluationFailed, ValueError), "the oven is cold", engines.pool(2)),
        ("shape", doxa.BadInput, "now a tensor of shape", engines.in_process(16)),
        ("no number", doxa.Diverged, "not finite at any of", engines.in_process(16)),
    ],
)
def test_a_net_s_search_that_fails_goes_on_from_its_last_generation(
    how: str, kind: Any, says: str, engine: Any, tmp_path: Path
) -> None:
    def fitted(mended: Path, **more: Any) -> doxa.Belief:
        torch.manual_seed(0)
        return doxa.fit(
            doxa.nets.mlp(2, (8,), 2),
            for_workers.rows(),
            learner=search.learner(minimise=for_workers.Measure(mended, how), size=32, engine=engine, scale=0.1),
            likelihood=doxa.likelihoods.categorical(),
            epochs=6,
            batch_size=48,
            lr=0.03,
            progress=False,
            **more,
        )

    with pytest.raises(kind, match=says):
        fitted(tmp_path / "mended", checkpoint=tmp_path / "run", checkpoint_steps=1)
    assert (tmp_path / "run" / "checkpoint.doxa").exists()
    (tmp_path / "mended").touch()
    again = fitted(tmp_path / "mended", checkpoint=tmp_path / "run", resume=True)
    engine = engines.in_process(16)
    whole = fitted(tmp_path / "mended")
    assert torch.equal(again.posterior.mean, whole.posterior.mean)
    assert again.record.history == whole.record.history


@pytest.mark.parametrize(("error", "kind"), [(ValueError, engines.EvaluationFailed), (doxa.BadInput, doxa.BadInput)])
def test_what_one_rank_raises_ends_all_of_them(error: Any, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [slice(k, k + 1) for k in range(4)]
    said: list[Any] = []

    def fails(units: slice) -> torch.Tensor:
        if units.start == 1:
            raise error("the oven is cold")
        return torch.ones(1)

    def gathered(every: list[Any], own: Any) -> None:
        said.append(own)
        every[:] = said if len(said) == 2 else [own, said[0]]

    monkeypatch.setattr(torch.distributed, "all_gather_object", gathered)
    for rank in (1, 0):  # who raised it, and the other
        with pytest.raises(kind, match=r"in generation 5, block 1 of the population: .*the oven is cold"):
            Ranks(rank, 2).exchange(4, fails, blocks)
    assert said[0][1] == (1, error.__name__, said[0][1][2])
    assert said[1][1] is None


def test_processes_and_actors_are_hired_on_the_same_terms() -> None:
    pool, ray = engines.pool(3, 2, "drop", 8), engines.ray(3, 2, "drop", 8, {"num_gpus": 1})
    own = {f.name for f in fields(pool)}
    assert {f.name for f in fields(ray)} == {*own, "options"}
    assert all(getattr(pool, name) == getattr(ray, name) for name in own)
    assert engines.pool(1) == engines.pool(4, lost="drop") != engines.pool(1, parts=8)
    for engine in (engines.pool, engines.ray):
        with pytest.raises(doxa.BadInput, match="parts must be at least 1"):
            engine(parts=0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: engines.pool(0), "workers must be at least 1"),
        (lambda: engines.pool(2, lost="cry"), 'lost must be "reissue" or "drop"'),
        (lambda: minimise(lambda w: w.sum(), [1.0], engine=engines.pool(1), **KEYS), "at the top of a module"),
        (lambda: search.learner(engine="pool"), "one of doxa.search.engines"),
        (lambda: minimise(for_workers.sphere, [1.0], engine="pool"), "one of doxa.search.engines"),
    ],
)
def test_bad_input_is_named(call: Any, says: str) -> None:
    with pytest.raises(doxa.BadInput, match=says):
        call()
