"""Workers that do not answer: stopped, hanging or ended by their objective, they are replaced, to the same bits."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import doxa
import for_workers
from doxa.search import engines, minimise
from doxa.search.engines.attention import Attention, beat_interval
from doxa.search.engines.follower import ANSWER, ANSWERS, BEAT, EVALUATE, RAISED, READY, Follower
from doxa.search.engines.pool import ProcessBackend
from doxa.search.engines.worker_pool import DROP, MAX_UNSENT, REISSUE, PoolSettings, Worker, WorkerPool

START, KEYS = [0.0, 0.0, 0.0], {"generations": 12, "size": 32, "progress": False}
SILENCE = 1.0


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """As many as a worker has: results depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def undisturbed() -> Tensor:
    return minimise(for_workers.sphere, START, engine=engines.in_process(parts=16), **KEYS).path


def afflicted(folder: Path, how: str, times: int = 1) -> for_workers.Afflicted:
    (folder / "marks").mkdir()
    return for_workers.Afflicted(folder / "marks", how, times, os.getpid())


def test_a_frozen_worker_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    result = minimise(afflicted(tmp_path, "freezes"), START, engine=engines.pool(2, silence=SILENCE), **KEYS)
    assert torch.equal(result.path, undisturbed())
    assert not for_workers.is_alive(int((tmp_path / "marks" / "0").read_text()))


def test_an_objective_that_hangs_is_ended_by_its_deadline(tmp_path: Path) -> None:
    result = minimise(afflicted(tmp_path, "hangs"), START, engine=engines.pool(2, deadline=SILENCE), **KEYS)
    assert torch.equal(result.path, undisturbed())
    assert (tmp_path / "marks" / "0").exists()


def test_an_objective_that_calls_sys_exit_ends_the_search_at_once(tmp_path: Path) -> None:
    words = r"in generation \d+, block (\d+) of the population: SystemExit: 3\s+at point (\d+) of the generation"
    with pytest.raises(engines.EvaluationFailed, match=words) as error:
        minimise(afflicted(tmp_path, "exits", 1000), START, engine=engines.pool(1), **KEYS)
    assert len(list((tmp_path / "marks").iterdir())) == 1
    found = re.search(words, str(error.value))
    assert found is not None
    assert int(found[1]) == int(found[2]) // 2  # 32 points in 16 blocks


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("the oven is cold")], ids=repr)
def test_whatever_an_objective_raises_in_a_worker_is_told(error: BaseException) -> None:
    def fails(units: slice) -> Tensor:
        raise error

    class Connection:
        def __init__(self) -> None:
            self.sent: list[Any] = []

        def recv(self) -> Any:
            return (ANSWERS, 4, []) if self.sent else (EVALUATE, 4, 0)

        def send(self, message: Any) -> None:
            self.sent.append(message)

    connection = Connection()
    Follower(connection).exchange(4, fails, [slice(0, 1)])
    kind, generation, block, (name, _) = connection.sent[0]
    assert (kind, generation, block, name) == (RAISED, 4, 0, type(error).__name__)


def test_a_rank_that_stands_still_ends_the_others_with_a_word_and_they_go_on_from_there(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    with socket.socket() as server:
        server.bind(("localhost", 0))
        port = server.getsockname()[1]
    environment = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "WORLD_SIZE": "2", **importing()}
    command = [sys.executable, for_workers.__file__, "freezing_rank", str(tmp_path)]
    ranks = [subprocess.Popen(command, env={**environment, "RANK": str(k)}, stderr=subprocess.PIPE) for k in (0, 1)]
    try:
        _, words = ranks[0].communicate(timeout=100)
        assert ranks[1].poll() is None
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert ranks[0].returncode == 1
    assert "another rank has died, stands still, or took more than timeout=2 s longer" in words.decode()
    assert (tmp_path / "run" / "checkpoint.doxa").exists()
    keys = {**KEYS, "checkpoint": tmp_path / "run", "resume": True}
    assert torch.equal(minimise(for_workers.sphere, START, engine=engines.in_process(16), **keys).path, undisturbed())


def importing() -> dict[str, str]:
    """An environment in which a process finds what tests define."""
    paths = [str(Path(for_workers.__file__).parent), *sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def test_workers_end_when_their_leader_is_killed_even_those_that_are_frozen(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    command = [sys.executable, for_workers.__file__, "lead_orphans", str(tmp_path)]
    leader = subprocess.Popen(command, env=importing())
    try:
        for_workers.wait_for(lambda: len(list((tmp_path / "marks").iterdir())) == 2)
        pids = [int(path.name) for path in (tmp_path / "marks").iterdir()]
        os.kill(pids[0], signal.SIGSTOP)
    finally:
        leader.kill()
        leader.wait()
    for_workers.wait_for(lambda: not any(for_workers.is_alive(pid) for pid in pids))


@dataclass
class Scripted:
    """What becomes of a worker, and what it was asked for and has not answered."""

    plan: str
    asked: list[Any] = field(default_factory=list)
    asked_at: float = 0.0
    beats: int = 0


class ScriptedBackend:
    """Workers of whom some never say a word, by a clock that is moved on by hand."""

    start_seconds = 50.0
    start_advice = ""
    explains_deaths = True

    def __init__(self, *plans: str, seconds: float = 1.0) -> None:
        self.now, self.seconds, self.plans, self.dismissed = 0.0, seconds, list(plans), list[Worker]()
        self.behind_until = 0.0
        self.stop_at, self.stop_seconds = float("inf"), 0.0  # when everyone is stopped, and for how long

    def start_worker(self, copy: bytes) -> Worker:
        return Worker(Scripted(self.plans.pop(0)))

    def send(self, workers: Sequence[Worker], message: Any) -> None:
        for worker in workers if message[0] == EVALUATE else ():
            worker.connection.asked.append(message)
            worker.connection.asked_at = self.now

    def unsent(self, worker: Worker) -> int:
        return MAX_UNSENT + 1 if self.now < self.behind_until else 0

    def receive(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Any]]:
        self.now += self.seconds
        if self.now >= self.stop_at:
            self.now, self.stop_at = self.now + self.stop_seconds, float("inf")
        return [(worker, said) for worker in workers for said in self._say(worker)]

    def _say(self, worker: Worker) -> list[Any]:
        script: Scripted = worker.connection
        idle, asked = (BEAT, -1, -1, 0.0), script.asked
        if script.plan == "never starts":
            return []
        if not worker.ready:
            return [(READY, -1, -1, None)]
        if script.plan in ("freezes", "computes"):
            return []
        if script.plan in ("exits", "is killed") and asked:
            return [None]
        if script.plan == "hangs" or (script.plan == "takes ten beats" and asked and script.beats < 10):
            script.beats += 1
            return [(BEAT, *asked[0][1:], self.now - script.asked_at) if asked else idle]
        if script.plan == "catches up" and self.now < 100:
            return [idle]
        script.asked, script.beats = [], 0
        return [idle, *((ANSWER, generation, block, np.ones(1)) for _, generation, block in asked)]

    def shows_life(self, worker: Worker) -> bool:
        return bool(worker.connection.plan == "computes")

    def exit_reason(self, worker: Worker) -> str | None:
        return "exit code 3" if worker.connection.plan == "exits" else None

    def dismiss(self, worker: Worker) -> None:
        self.dismissed.append(worker)

    def stop_workers(self, workers: Sequence[Worker]) -> None: ...


def evaluated_by(backend: ScriptedBackend, **settings: Any) -> list[Tensor | None]:
    pool = WorkerPool(backend, PoolSettings(1, **settings), lambda: b"", clock=lambda: backend.now)
    return pool.exchange(4, lambda units: torch.zeros(1), [slice(0, 1), slice(1, 2)])


ONES = [torch.ones(1, dtype=torch.float64)] * 2


@pytest.mark.parametrize(("plan", "seconds"), [("freezes", 30), ("never starts", 50), ("hangs", 20)])
def test_a_worker_that_does_not_answer_is_waited_for_as_long_as_was_said(plan: str, seconds: float) -> None:
    backend = ScriptedBackend(plan, "works")
    assert evaluated_by(backend, silence=30.0, deadline=20.0 if plan == "hangs" else None) == ONES
    assert len(backend.dismissed) == 1
    assert seconds < backend.now < seconds + 8


def test_time_in_which_the_leader_itself_was_stopped_is_not_silence() -> None:
    backend = ScriptedBackend("works", seconds=3600.0)
    assert evaluated_by(backend, silence=30.0) == ONES
    backend = ScriptedBackend("freezes", "works", seconds=3600.0)
    assert evaluated_by(backend, silence=30.0) == ONES
    assert backend.now > 15 * 3600  # of each hour two seconds count
    assert len(backend.dismissed) == 1


@pytest.mark.parametrize("stop_at", [2.0, 5.0])
def test_time_in_which_everyone_was_stopped_is_not_the_evaluation_s(stop_at: float) -> None:
    backend = ScriptedBackend("takes ten beats")
    backend.stop_at, backend.stop_seconds = stop_at, 3600.0
    assert evaluated_by(backend, deadline=20.0) == ONES
    assert not backend.dismissed
    assert backend.now > 3600


def test_a_worker_that_computes_without_a_word_is_not_silent_but_may_be_late() -> None:
    backend = ScriptedBackend("computes", "works")
    assert evaluated_by(backend, silence=30.0, deadline=300.0) == ONES
    assert 300 < backend.now < 320


def test_a_deadline_is_for_the_evaluation_and_not_for_what_comes_before_it() -> None:
    backend = ScriptedBackend("catches up")
    assert evaluated_by(backend, deadline=20.0) == ONES
    assert backend.now >= 100


def test_the_search_waits_for_a_worker_for_which_too_much_is_held() -> None:
    backend = ScriptedBackend("works")
    backend.behind_until = 100.0
    assert evaluated_by(backend) == ONES
    assert backend.now >= 100


def test_what_a_silent_worker_was_at_can_be_left_out() -> None:
    values = evaluated_by(ScriptedBackend("freezes", "works"), lost=DROP)
    assert values == [None, ONES[0]]


def test_a_block_that_costs_one_worker_after_the_other_ends_the_search() -> None:
    backend = ScriptedBackend(*["freezes"] * 9)
    with pytest.raises(engines.EvaluationFailed, match=r"3 workers .* block 0 .* generation 5: .* no sign of life"):
        evaluated_by(backend, silence=30.0)
    assert len(backend.dismissed) == 3


def test_a_block_at_which_every_worker_ends_itself_ends_the_search() -> None:
    with pytest.raises(
        engines.EvaluationFailed, match=r"3 workers .* block 0 .*: the last one ended by itself, exit co"
    ):
        evaluated_by(ScriptedBackend(*["exits"] * 9))


def test_a_block_whose_workers_die_for_no_known_reason_is_given_up_later() -> None:
    backend = ScriptedBackend(*["is killed"] * 9)
    backend.explains_deaths = False
    words = r"6 workers .* block 0 .* generation 5: the last one died, and nothing is known of why"
    with pytest.raises(engines.EvaluationFailed, match=words):
        evaluated_by(backend)
    assert len(backend.plans) == 3
    backend = ScriptedBackend(*["is killed"] * 5, "works")
    backend.explains_deaths = False
    assert evaluated_by(backend) == ONES


def test_a_block_whose_workers_somebody_kills_is_not_to_blame() -> None:
    assert evaluated_by(ScriptedBackend(*["is killed"] * 9, "works")) == ONES


def test_workers_that_all_end_are_lost_for_a_reason_that_is_told() -> None:
    words = r"11 workers were lost one after the other .*: the last one ended by itself, exit code 3"
    backend = ScriptedBackend(*["exits"] * 12)
    pool = WorkerPool(backend, PoolSettings(1, lost=DROP), lambda: b"", clock=lambda: backend.now)
    with pytest.raises(engines.EvaluationFailed, match=words):
        pool.exchange(4, lambda units: torch.zeros(1), [slice(k, k + 1) for k in range(12)])


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [
        (3, "exit code 3"),
        (-signal.SIGSEGV, "killed by SIGSEGV"),
        (-signal.SIGABRT, "killed by SIGABRT"),
        (-63, "killed by signal 63"),
        (-signal.SIGKILL, None),
        (-signal.SIGTERM, None),
        (-signal.SIGINT, None),
        (-signal.SIGHUP, None),
    ],
)
def test_only_signals_from_outside_are_no_reason_of_the_worker_s_own(exit_code: int, reason: str | None) -> None:
    process = type("Process", (), {"exitcode": exit_code})()
    worker = Worker(type("Connection", (), {"process": process})())
    assert ProcessBackend(threads=1).exit_reason(worker) == reason


def test_workers_that_never_begin_end_the_search() -> None:
    backend = ScriptedBackend(*["never starts"] * 12)
    with pytest.raises(engines.EvaluationFailed, match=r"11 workers were lost one after the other"):
        evaluated_by(backend, lost=REISSUE)


def test_a_process_that_is_stopped_shows_no_life_and_one_that_computes_does() -> None:
    backend = ProcessBackend(threads=1)
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    worker = Worker(type("Connection", (), {"process": process, "cpu_seconds": None})())
    try:
        backend.shows_life(worker)
        for_workers.wait_for(lambda: backend.shows_life(worker))
        process.send_signal(signal.SIGSTOP)
        for_workers.wait_for(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        backend.shows_life(worker)
        time.sleep(0.05)
        assert not backend.shows_life(worker)
    finally:
        process.kill()
        process.wait()


def test_beats_come_often_enough_and_cost_little() -> None:
    assert beat_interval(30.0) == 1.0
    assert beat_interval(1.0) == pytest.approx(0.2)
    times = iter([0.0, 0.5, 100.0, 200.0, 201.0])
    attention = Attention(2.0, lambda: next(times))
    attention.begin()
    assert [attention.look() for _ in range(2)] == [0.5, 2.5]
    attention.begin()  # what was between two exchanges does not count
    assert attention.look() == 3.5


@pytest.mark.parametrize("settings", [{"silence": 0}, {"silence": float("inf")}, {"deadline": -1.0}], ids=str)
@pytest.mark.parametrize("engine", [engines.pool, engines.ray])
def test_limits_must_be_seconds(engine: Any, settings: dict[str, float]) -> None:
    with pytest.raises(doxa.BadInput, match=f"{next(iter(settings))} must be a positive, finite number"):
        engine(2, **settings)
