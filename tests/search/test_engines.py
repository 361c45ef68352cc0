"""Workers: the same results for any number of them, whatever becomes of them."""

from __future__ import annotations

import ast
import importlib
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import doxa
import for_workers
from doxa import BadInput, search
from doxa.search import engines, minimise
from doxa.search.engines.follower import ANSWER, EVALUATE, OUT_OF_STEP, READY, Follower, LeaderGone
from doxa.search.engines.in_process import evaluate_in_process
from doxa.search.engines.pool import ProcessBackend
from doxa.search.engines.torchrun import RankExchange
from doxa.search.engines.worker_pool import DROP, REISSUE, PoolSettings, Worker, WorkerPool
from doxa.search.minimise import Minimisation
from doxa.search.perturbations.population import make_population
from doxa.weights.layout import lay_out


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """As many as a worker has: results depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


KEYS: dict[str, Any] = {"generations": 12, "size": 32}


def test_one_two_or_four_workers_find_the_same_bits() -> None:
    in_process = minimise(for_workers.sphere, [3.0, -2.0, 0.5], engine=engines.in_process(parts=16), **KEYS)
    for workers in (1, 2, 4):
        result = minimise(for_workers.sphere, [3.0, -2.0, 0.5], engine=engines.pool(workers), **KEYS)
        assert torch.equal(result.path, in_process.path)
        assert torch.equal(result.best, in_process.best)
        assert result.trajectory == in_process.trajectory


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

    in_process, pooled = (fitted(engine) for engine in (engines.in_process(parts=16), engines.pool(2)))
    assert torch.equal(in_process.posterior.mean, pooled.posterior.mean)
    assert in_process.record.history == pooled.record.history


def deadly_in(folder: Path, times: int) -> for_workers.Deadly:
    (folder / "dead").mkdir()
    (folder / "driver").write_text(str(os.getpid()))
    return for_workers.Deadly(folder / "dead", times)


def calm() -> search.SearchResult:
    return minimise(for_workers.sphere, [0.0, 0.0, 0.0], engine=engines.in_process(parts=16), **KEYS)


def test_ten_workers_that_are_killed_are_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    result = minimise(deadly_in(tmp_path, 10), [0.0, 0.0, 0.0], engine=engines.pool(2), **KEYS)
    assert len(list((tmp_path / "dead").iterdir())) >= 10
    assert [row["generation"] for row in result.trajectory] == [*range(1, KEYS["generations"] + 1)]
    assert torch.equal(result.path, calm().path)


def fleet_by(engine: Any, **more: Any) -> list[list[float]]:
    """Three nets with buffers, three steps: nine exchanges."""
    torch.manual_seed(0)
    beliefs = doxa.fleet(
        nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)),
        for_workers.rows(),
        learners=search.learner(size=32, engine=engine),
        seeds=[1, 2, 3],
        likelihood=doxa.likelihoods.categorical(),
        epochs=3,
        batch_size=96,
        lr=0.01,
        progress=False,
        **more,
    )
    return [belief.posterior.mean.tolist() for belief in beliefs]


def test_a_fleet_outlives_a_worker_killed_during_any_of_its_nets() -> None:
    killed = for_workers.Killing(
        engines.pool(1, parts=4), (1, 3, 8), for_workers.kill_process
    )  # the second, the first and the third net
    assert fleet_by(killed) == fleet_by(engines.in_process(parts=4))


def test_processes_start_side_by_side_however_long_their_copies_are_and_can_be_let_go_at_once() -> None:
    backend = ProcessBackend(threads=1)
    workers = [backend.start_worker(bytes(1 << 24)) for _ in range(2)]
    assert all(worker.connection.channel.unsent for worker in workers)
    backend.stop_workers(workers)
    assert not any(worker.connection.process.is_alive() for worker in workers)


@dataclass
class ScriptedBackend:
    """Workers who say what was written for them, one after the other."""

    messages: deque[Any]
    start_seconds: float = 60.0
    start_advice: str = "begin again"
    explains_deaths: bool = True

    def __post_init__(self) -> None:
        self.sent: list[Any] = []

    def start_worker(self, copy: bytes) -> Worker:
        return Worker(None)

    def send(self, workers: Sequence[Worker], message: Any) -> None:
        self.sent.append(message)

    def unsent(self, worker: Worker) -> int:
        return 0

    def receive(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Any]]:
        return [(workers[0], self.messages.popleft())]

    def shows_life(self, worker: Worker) -> bool:
        return False

    def dismiss(self, worker: Worker) -> None: ...

    def exit_reason(self, worker: Worker) -> str | None:
        return None

    def stop_workers(self, workers: Sequence[Worker]) -> None: ...


def pool_that_receives(*messages: Any, lost: str = REISSUE) -> WorkerPool:
    backend = ScriptedBackend(deque([(READY, -1, -1, None), *messages]))
    return WorkerPool(backend, PoolSettings(1, lost=lost), lambda: b"")


def no_evaluation(units: slice) -> Tensor:
    raise AssertionError("others evaluate")


def test_a_block_that_was_answered_for_another_generation_is_asked_for_again() -> None:
    pool = pool_that_receives((ANSWER, 3, 0, np.zeros(1)), (ANSWER, 4, 0, np.ones(1)))
    assert pool.exchange(4, no_evaluation, [slice(0, 1)]) == [torch.ones(1, dtype=torch.float64)]
    assert pool.backend.sent[:2] == [(EVALUATE, 4, 0)] * 2  # type: ignore[attr-defined]


def test_a_worker_that_is_told_of_a_later_generation_says_so_and_the_search_ends() -> None:
    class BrokenConnection:
        """One that breaks when all is said."""

        def __init__(self) -> None:
            self.incoming, self.sent = [(EVALUATE, 5, 0)], list[Any]()

        def recv(self) -> Any:
            if not self.incoming:
                raise EOFError
            return self.incoming.pop()

        def send(self, message: Any) -> None:
            self.sent.append(message)

    connection = BrokenConnection()
    with pytest.raises(LeaderGone):
        Follower(connection).exchange(4, no_evaluation, [slice(0, 1)])
    assert connection.sent == [(OUT_OF_STEP, 4, -1, None)]
    with pytest.raises(engines.OutOfStep, match=r"a worker stands at exchange 4, and the search .* at 5"):
        pool_that_receives(*connection.sent).exchange(5, no_evaluation, [slice(0, 1)])


def test_actors_of_ray_find_the_same_bits_whatever_becomes_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    # Actors import what tests define.
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    try:
        result = minimise(deadly_in(tmp_path, 2), [0.0, 0.0, 0.0], engine=engines.ray(2), **KEYS)
        fleet_means = fleet_by(for_workers.Killing(engines.ray(1, parts=4), (4,), for_workers.kill_actor))
        (tmp_path / "frozen").mkdir()
        freezes = for_workers.Afflicted(tmp_path / "frozen", "freezes", 1, os.getpid())
        frozen = minimise(freezes, [0.0, 0.0, 0.0], engine=engines.ray(2, silence=1.0), **KEYS)
        (tmp_path / "hung").mkdir()
        hangs = for_workers.Afflicted(tmp_path / "hung", "hangs", 1, os.getpid())
        hung = minimise(hangs, [0.0, 0.0, 0.0], engine=engines.ray(2, deadline=1.0), **KEYS)
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
    assert not for_workers.is_alive(int((tmp_path / "frozen" / "0").read_text()))
    assert (tmp_path / "hung" / "0").exists()
    for disturbed in (result, frozen, hung):
        assert torch.equal(disturbed.path, calm().path)
    assert fleet_means == fleet_by(engines.in_process(parts=4))


@pytest.mark.parametrize(("ranks", "times"), [(1, 0), (2, 1)])
def test_ranks_of_torchrun_find_the_same_bits_and_may_be_killed(ranks: int, times: int, tmp_path: Path) -> None:
    deadly_in(tmp_path, times)
    (tmp_path / "driver").write_text("0")
    (tmp_path / "times").write_text(str(times))
    run_by_torchrun(Path(for_workers.__file__), ranks, tmp_path)
    assert len(list((tmp_path / "dead").iterdir())) >= times
    assert ast.literal_eval((tmp_path / "path").read_text()) == calm().path.tolist()


def test_a_fleet_outlives_a_rank_killed_during_its_second_net(tmp_path: Path) -> None:
    run_by_torchrun(Path(__file__), 2, tmp_path)
    assert (tmp_path / "killed").exists()
    assert ast.literal_eval((tmp_path / "fleet").read_text()) == fleet_by(engines.in_process(parts=4))


def ranked_fleet(folder: Path) -> None:
    """What every rank does in the test above; the second ends itself once."""

    def kill_once(ranks: RankExchange) -> None:
        if ranks.rank == 1 and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), 9)

    torch.set_num_threads(1)
    engine = for_workers.Killing(engines.torchrun(timeout=20, parts=4), (4,), kill_once)
    means = fleet_by(engine, checkpoint=folder / "run", resume=True)
    if engine.leads:
        (folder / "fleet").write_text(repr(means))


def run_by_torchrun(script: Path, ranks: int, folder: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--max-restarts", "3"]
    command += ["--master-port", str(free_port()), str(script), str(folder)]
    folders = [Path(doxa.__file__).parents[1], Path(for_workers.__file__).parent, os.environ.get("PYTHONPATH", "")]
    python_path = os.pathsep.join(str(entry) for entry in folders if entry)
    completed = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": python_path}, capture_output=True, text=True, timeout=300
    )
    assert completed.returncode == 0, completed.stderr[-3000:]


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("localhost", 0))
        return int(server.getsockname()[1])


def test_torchrun_s_engine_needs_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(doxa.BadInput, match="torchrun --nproc-per-node"):
        minimise(for_workers.sphere, [1.0], engine=engines.torchrun(), **KEYS)


def test_what_a_lost_worker_was_at_can_be_left_out(tmp_path: Path) -> None:
    deadly = deadly_in(tmp_path, 1)
    result = minimise(deadly, [0.0, 0.0, 0.0], engine=engines.pool(2, lost="drop"), **KEYS)
    assert len(result.trajectory) == 12
    assert not torch.equal(result.path, calm().path)
    assert result.value < 0.5


def test_a_crew_leaves_out_the_block_of_whoever_died_at_it() -> None:
    pool = pool_that_receives(None, (READY, -1, -1, None), (ANSWER, 0, 1, np.ones(1)), lost=DROP)
    values = pool.exchange(0, no_evaluation, [slice(0, 1), slice(1, 2)])
    assert values == [None, torch.ones(1, dtype=torch.float64)]


@dataclass(frozen=True)
class Lossy:
    """An engine that loses the second of four blocks."""

    parts: int = 4
    leads = True

    @contextmanager
    def start_workers(self, copy: Any) -> Iterator[Any]:
        yield losing_the_second


def losing_the_second(generation: int, evaluate: Any, blocks: Sequence[slice]) -> list[Tensor | None]:
    return [None if k == 1 else evaluate(block) for k, block in enumerate(blocks)]


# Of 32 perturbations in four blocks, those that arrive where the second block is lost.
ARRIVED = [*range(8), *range(16, 32)]


def test_a_function_s_step_is_by_the_mean_of_what_arrived() -> None:
    start, scale, lr = torch.tensor([3.0, -2.0, 0.5], dtype=torch.float64), 0.5, 0.1
    keys: dict[str, Any] = {"antithetic": False, "shaping": search.shaping.raw, "gradient": search.plain}
    keys |= {"scale": scale, "lr": lr, "scale_lr": 0.0, "size": 32, "generations": 1}
    result = minimise(for_workers.sphere, start, engine=Lossy(), seed=7, **keys)
    epsilon = make_population(32, False, (7, "search")).noise(0, slice(0, 32), start)[ARRIVED]
    values = (start + scale * epsilon - 1).square().sum(1)
    by_hand = start - lr * (values[:, None] * epsilon / scale).mean(0)
    torch.testing.assert_close(result.mean, by_hand, rtol=1e-12, atol=0)


def test_a_net_s_step_is_by_the_mean_of_what_arrived() -> None:
    torch.manual_seed(0)
    net, (x, y), scale, lr = doxa.nets.mlp(2, (4,), 2).double(), for_workers.rows(), 0.1, 0.01
    x, (layout, start) = x.double(), lay_out(net)
    belief = doxa.fit(
        net,
        (x, y),
        learner=search.learner(
            search.weight_space(antithetic=False, shaping=search.shaping.raw), size=32, scale=scale, engine=Lossy()
        ),
        likelihood=doxa.likelihoods.categorical(),
        optimiser=doxa.optimisers.sgd(),
        epochs=1,
        batch_size=96,
        lr=lr,
        seed=7,
        progress=False,
    )
    epsilon = make_population(32, False, (7, "net", 0, "search")).noise(0, slice(0, 32), start)[ARRIVED]
    outputs = [torch.func.functional_call(net, layout.weights(start + scale * e), x) for e in epsilon]
    values = torch.stack([nn.functional.cross_entropy(output, y) for output in outputs])
    by_hand = start - lr * (values[:, None] * epsilon / scale).mean(0)
    torch.testing.assert_close(belief.posterior.mean, by_hand.detach(), rtol=1e-12, atol=1e-14)


BROKEN: Any = pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("raises", engines.EvaluationFailed, "ValueError: the oven is cold"),
        ("shape", doxa.BadInput, "the objective must give numbers"),
        ("no number", doxa.Diverged, "not finite at any of 32"),
    ],
)


@BROKEN
def test_a_generation_that_fails_in_a_worker_is_told_and_the_search_goes_on_from_before_it(
    how: str, kind: Any, message: str, tmp_path: Path
) -> None:
    mended, start = tmp_path / "mended", [3.0, -2.0, 0.5]
    # One worker takes all blocks: from its fourth generation on, it finds no number.
    f = for_workers.NoNumber(mended, 96) if how == "no number" else for_workers.Breaks(mended, how)
    keys: dict[str, Any] = {**KEYS, "checkpoint": tmp_path / "run", "checkpoint_every": 100}
    with pytest.raises(kind, match=message) as error:
        minimise(f, start, engine=engines.pool(1), **keys)
    error_text = " ".join([str(error.value), *getattr(error.value, "__notes__", [])])
    assert "generations were done before, and are kept in" in error_text
    if kind is not doxa.BadInput:
        assert 1 <= len(error.value.found.trajectory) < 12
        assert error.value.found.path.isfinite().all()
    mended.touch()
    resumed = minimise(f, start, engine=engines.in_process(16), resume=True, **keys)
    uninterrupted = minimise(for_workers.sphere, start, engine=engines.in_process(16), **KEYS)
    assert torch.equal(resumed.path, uninterrupted.path)


@pytest.mark.parametrize(
    ("how", "kind", "message", "engine"),
    [
        ("raises", (engines.EvaluationFailed, ValueError), "the oven is cold", engines.in_process(16)),
        ("raises", (engines.EvaluationFailed, ValueError), "the oven is cold", engines.pool(2)),
        ("shape", doxa.BadInput, "now a tensor of shape", engines.in_process(16)),
        ("no number", doxa.Diverged, "not finite at any of", engines.in_process(16)),
    ],
)
def test_a_net_s_search_that_fails_goes_on_from_its_last_generation(
    how: str, kind: Any, message: str, engine: Any, tmp_path: Path
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

    with pytest.raises(kind, match=message):
        fitted(tmp_path / "mended", checkpoint=tmp_path / "run", checkpoint_steps=1)
    assert (tmp_path / "run" / "checkpoint.doxa").exists()
    (tmp_path / "mended").touch()
    resumed = fitted(tmp_path / "mended", checkpoint=tmp_path / "run", resume=True)
    engine = engines.in_process(16)
    uninterrupted = fitted(tmp_path / "mended")
    assert torch.equal(resumed.posterior.mean, uninterrupted.posterior.mean)
    assert resumed.record.history == uninterrupted.record.history


@pytest.mark.parametrize(("error", "kind"), [(ValueError, engines.EvaluationFailed), (doxa.BadInput, doxa.BadInput)])
def test_what_one_rank_raises_ends_all_of_them(error: Any, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [slice(k, k + 1) for k in range(4)]
    contributions: list[Any] = []

    def fails(units: slice) -> torch.Tensor:
        if units.start == 1:
            raise error("the oven is cold")
        return torch.ones(1)

    def all_gather(gathered_objects: list[Any], contribution: Any) -> None:
        contributions.append(contribution)
        gathered_objects[:] = contributions if len(contributions) == 2 else [contribution, contributions[0]]

    monkeypatch.setattr(torch.distributed, "all_gather_object", all_gather)
    for rank in (1, 0):  # who raised it, and the other
        with pytest.raises(kind, match=r"in generation 5, block 1 of the population: .*the oven is cold"):
            RankExchange(rank, 2).exchange(4, fails, blocks)
    assert contributions[0][1] == (1, error.__name__, contributions[0][1][2])
    assert contributions[1][1] is None


@pytest.fixture
def gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks, of which the second speaks when the first has ended."""
    first: list[Any] = []

    def all_gather(gathered_objects: list[Any], contribution: Any) -> None:
        first.append(contribution)
        gathered_objects[:] = [first[0], contribution]

    monkeypatch.setattr(torch.distributed, "all_gather_object", all_gather)


def under_way(seed: int = 0, start: float = 3.0, generations: int = 0, parts: int = 1) -> Minimisation:
    minimising = Minimisation(search.Search([start, 1.0], seed=seed), for_workers.sphere, False, 5, 0.0, parts)
    for _ in range(generations):
        minimising.run_generation(evaluate_in_process)
    return minimising


@pytest.mark.usefixtures("gathering")
@pytest.mark.parametrize("difference", [{"seed": 1}, {"start": 3.5}, {"generations": 1}, {"parts": 2}], ids=str)
def test_ranks_that_stand_elsewhere_are_named(difference: dict[str, Any]) -> None:
    under_way().run_generation(RankExchange(0, 2).exchange)
    elsewhere = under_way(**difference)
    before, generation = elsewhere.search.mean.clone(), elsewhere.search.generation + 1
    with pytest.raises(engines.OutOfStep, match=rf"rank 0 in generation 1 of .*, rank 1 in generation {generation} of"):
        elsewhere.run_generation(RankExchange(1, 2).exchange)
    assert torch.equal(elsewhere.search.mean, before)


@pytest.mark.usefixtures("gathering")
def test_ranks_that_stand_at_the_same_place_hear_one_another() -> None:
    first, second = under_way(), under_way()
    for rank, minimising in enumerate((first, second)):
        minimising.run_generation(RankExchange(rank, 2).exchange)
    assert torch.equal(first.search.mean, second.search.mean)


@dataclass(frozen=True)
class Ranked:
    """One rank as an engine."""

    rank: int
    parts: int = 1
    leads = True

    @contextmanager
    def start_workers(self, copy: Any) -> Iterator[Any]:
        yield RankExchange(self.rank, 2).exchange


@pytest.mark.usefixtures("gathering")
def test_ranks_that_learn_a_net_with_other_seeds_are_named() -> None:
    def fitted(rank: int, seed: int) -> None:
        torch.manual_seed(0)
        doxa.fit(
            doxa.nets.mlp(2, (4,), 2),
            for_workers.rows(),
            learner=search.learner(size=8, engine=Ranked(rank)),
            likelihood=doxa.likelihoods.categorical(),
            epochs=1,
            batch_size=96,
            seed=seed,
            progress=False,
        )

    fitted(0, seed=0)
    with pytest.raises(engines.OutOfStep, match=r"rank 0 in generation 1 of .*, rank 1 in generation 1 of"):
        fitted(1, seed=1)


def test_processes_and_actors_are_hired_on_the_same_terms() -> None:
    pool, ray = engines.pool(3, 2, "drop", 8), engines.ray(3, 2, "drop", 8, {"num_gpus": 1})
    names = {f.name for f in fields(pool)}
    assert {f.name for f in fields(ray)} == {*names, "options"}
    assert all(getattr(pool, name) == getattr(ray, name) for name in names)
    assert engines.pool(1) == engines.pool(4, lost="drop") != engines.pool(1, parts=8)
    for engine in (engines.pool, engines.ray):
        with pytest.raises(doxa.BadInput, match="parts must be at least 1"):
            engine(parts=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: engines.pool(0), "workers must be at least 1"),
        (lambda: engines.pool(2, lost="cry"), 'lost must be "reissue" or "drop"'),
        (lambda: minimise(lambda w: w.sum(), [1.0], engine=engines.pool(1), **KEYS), "at the top of a module"),
        (lambda: search.learner(engine="pool"), "one of doxa.search.engines"),
        (lambda: minimise(for_workers.sphere, [1.0], engine="pool"), "one of doxa.search.engines"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(doxa.BadInput, match=message):
        call()


def test_a_pool_says_where_it_cannot_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(doxa.BadInput, match=r"engines\.pool needs Linux or macOS"):
        engines.pool(1).start_workers(lambda: b"")


if __name__ == "__main__":  # where torchrun starts it
    ranked_fleet(Path(sys.argv[1]))


def test_a_pool_of_more_workers_than_any_machine_feeds_is_refused() -> None:
    with pytest.raises(BadInput, match=r"engines.pool\(1000000\) is more than the \d+ processes"):
        search.minimise(search.functions.sphere, [1.0], engine=engines.pool(1_000_000), generations=1, progress=False)
