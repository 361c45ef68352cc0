"""Signals that reach a search and all its workers at once cost nobody anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch

import for_workers
from doxa.search import engines, minimise

START, KEYS = [0.0, 0.0, 0.0], {"generations": 12, "size": 32, "progress": False}


@contextmanager
def leading(how: str, folder: Path, workers: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads workers, in a group with them, when all evaluate."""
    (folder / "marks").mkdir()
    paths = [str(Path(for_workers.__file__).parent), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    command = [sys.executable, for_workers.__file__, how, str(folder)]
    leader = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        for_workers.wait_for(lambda: len(marks(folder)) == workers)
        yield leader
    finally:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()


def marks(folder: Path) -> set[int]:
    """Who has evaluated."""
    return {int(path.name) for path in (folder / "marks").iterdir()}


def terminate(group: int) -> None:
    """As schedulers do."""
    os.killpg(group, signal.SIGTERM)


def stop_and_wake(group: int) -> None:
    """As Ctrl-Z and fg do, or a container that is paused."""
    os.killpg(group, signal.SIGSTOP)
    time.sleep(1.2 * for_workers.HELD_DEADLINE)
    os.killpg(group, signal.SIGCONT)
    time.sleep(for_workers.HELD_DEADLINE / 4)  # workers beat, and are still at it


@pytest.mark.parametrize(
    ("disturb", "how", "exit_code"),
    [(terminate, "lead_held", 128 + signal.SIGTERM), (stop_and_wake, "lead_held_to_a_deadline", 0)],
)
def test_a_signal_to_the_whole_group_costs_no_worker(
    disturb: Callable[[int], None], how: str, exit_code: int, tmp_path: Path
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with leading(how, tmp_path, 1) as leader:
            workers = marks(tmp_path)
            disturb(leader.pid)
            (tmp_path / "go").touch()
            assert leader.wait(timeout=60) == exit_code
        assert marks(tmp_path) - {leader.pid} == workers
        keys: dict[str, Any] = {**KEYS, "checkpoint": tmp_path / "run", "resume": True}
        found = minimise(for_workers.sphere, START, engine=engines.in_process(16), **keys)
        undisturbed = minimise(for_workers.sphere, START, engine=engines.in_process(16), **KEYS)
        assert torch.equal(found.path, undisturbed.path)
    finally:
        torch.set_num_threads(before)


def test_a_process_that_ends_while_a_thread_searches_does_not_wait_for_its_workers(tmp_path: Path) -> None:
    with leading("lead_in_background", tmp_path, 2) as leader:
        leader.wait(timeout=60)
    for_workers.wait_for(lambda: not any(for_workers.is_alive(pid) for pid in marks(tmp_path)))
