"""What becomes of a search whose workers, or which itself, are killed, and how long does it take to go on?

One of two workers is killed (SIGKILL) in the middle of an evaluation; when another evaluates in its place, the next,
ten times in one search. The result is held, bit for bit, against that of a search that nobody disturbed. Then the
process that leads a pool is killed as often, and started again each time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from doxa_bench import killable_search
from doxa_bench.contenders.library import installed_version
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import NOT_INSTALLED, BenchTable, missing_library_notes

KILLS, GENERATIONS = 10, 200
PATIENCE = 120.0  # seconds for another worker to appear, and for the rest of a search
GLANCE = 0.002  # seconds between two looks

CASES = {
    "pool": "a worker of a pool",
    "torchrun": "a rank of torchrun",
    "ray": "an actor of Ray",
    "driver": "the process that leads a pool",
}


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    kills = settings.round_count(KILLS)
    result: dict[str, Any] = {
        "settings": {
            "workers": killable_search.WORKERS,
            "generations": GENERATIONS,
            "perturbations": killable_search.SIZE,
            "weights": killable_search.DIMENSION,
            "seconds_an_evaluation": killable_search.SECONDS,
            "kills": kills,
            "ray": installed_version("ray"),
        },
        "cases": {},
        "missing": {},
    }
    settings.progress("undisturbed")
    undisturbed = run_undisturbed()
    for case in CASES:
        if not settings.wants(case):
            continue
        if case == "ray" and installed_version("ray") is None:
            result["missing"][case] = {"ray": NOT_INSTALLED}
            continue
        settings.progress(f"{case}: {kills} kills")
        outcome = run_with_killed_leader(kills) if case == "driver" else run_with_killed_workers(case, kills)
        result["cases"][case] = compare_with_undisturbed(undisturbed, outcome)
        counts = result["cases"][case]
        settings.say(f"{case}: {counts['kills']} kills, worst {counts['worst']:.1f} s, same bits: {counts['same']}")
        yield result


def run_undisturbed() -> dict[str, Any]:
    """The same search by one process."""
    with trace_folder() as traces:
        (traces / "calm").touch()
        with start_search("in_process", traces) as process:
            return read_result(process, traces)


def run_with_killed_workers(case: str, kills: int) -> dict[str, Any]:
    """What a search comes to whose workers are killed, and how long another took to evaluate in their place."""
    rng, recovery_seconds = random.Random(case), []
    with trace_folder() as traces, start_search(case, traces) as process:
        for _ in range(kills):
            known_pids = all_worker_pids(process, traces)
            killed_at = kill_one(process, traces, rng)
            recovery_seconds.append(first_new_evaluation(process, traces, known_pids) - killed_at)
        (traces / "calm").touch()
        return {**read_result(process, traces), "seconds": recovery_seconds}


def run_with_killed_leader(kills: int) -> dict[str, Any]:
    """What a search comes to that is itself killed and started again; its workers must end when it does."""
    recovery_seconds: list[float] = []
    with trace_folder() as traces:
        for _ in range(kills):
            with start_search("pool", traces) as process:
                known_pids = all_worker_pids(process, traces)
                process.kill()
                killed_at = time.time()
                wait_for(None, traces, lambda: not live_processes(traces))
            with start_search("pool", traces) as process:
                recovery_seconds.append(first_new_evaluation(process, traces, known_pids) - killed_at)
        (traces / "calm").touch()
        with start_search("pool", traces) as process:
            return {**read_result(process, traces), "seconds": recovery_seconds}


def compare_with_undisturbed(undisturbed: dict[str, Any], outcome: dict[str, Any]) -> dict[str, Any]:
    """What is reported of a search that was disturbed."""
    expected_generations = range(1, GENERATIONS + 1)
    return {
        "kills": len(outcome["seconds"]),
        "same": outcome["bits"] == undisturbed["bits"],
        "lost": len({*expected_generations} - {*outcome["generations"]}),
        "twice": len(outcome["generations"]) - len({*outcome["generations"]}),
        "median": statistics.median(outcome["seconds"]),
        "worst": max(outcome["seconds"]),
        "seconds": outcome["seconds"],
        "by_the_engine": outcome["recovered"],
    }


@contextmanager
def trace_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        for subfolder in ("busy", "seen"):
            (Path(name) / subfolder).mkdir()
        yield Path(name)


@contextmanager
def start_search(case: str, traces: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The search as a process, which is ended with all that it started."""
    command = [sys.executable, "-m", "doxa_bench.killable_search", case, str(traces), str(GENERATIONS)]
    if case == "torchrun":
        run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(killable_search.WORKERS)]
        command = [sys.executable, *run, "--max-restarts", "1000", *command[1:]]
    log = (traces / "words").open("ab")
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()


def wait_for(process: subprocess.Popen[bytes] | None, traces: Path, probe: Callable[[], Any]) -> Any:
    """What a look finds when it finds something; an error with the search's own words where it has ended."""
    end = time.monotonic() + PATIENCE
    while not (observed := probe()):
        over = process is not None and process.poll() not in (None, 0)
        if over or time.monotonic() > end:
            log_tail = (traces / "words").read_text(encoding="utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"the search {'ended' if over else 'stood still'}: {log_tail}")
        time.sleep(GLANCE)
    return observed


def live_processes(traces: Path) -> set[int]:
    """Processes that have evaluated and have not ended."""
    return {int(path.name) for path in (traces / "seen").iterdir() if _is_alive(int(path.name))}


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def all_worker_pids(process: subprocess.Popen[bytes], traces: Path) -> set[int]:
    """Everyone who was ever seen, once all workers are there."""
    wait_for(process, traces, lambda: len(live_processes(traces)) >= killable_search.WORKERS)
    return {int(path.name) for path in (traces / "seen").iterdir()}


def kill_one(process: subprocess.Popen[bytes], traces: Path, rng: random.Random) -> float:
    """Kill a worker that is in the middle of an evaluation; when that was."""
    victim = rng.choice(sorted(live_processes(traces)))
    busy = traces / "busy" / str(victim)

    def killed() -> bool:
        os.kill(victim, signal.SIGSTOP)  # so that it is still evaluating when it is killed
        if busy.exists():
            os.kill(victim, signal.SIGKILL)
            return True
        os.kill(victim, signal.SIGCONT)
        return False

    wait_for(process, traces, killed)
    return time.time()


def first_new_evaluation(process: subprocess.Popen[bytes], traces: Path, known_pids: set[int]) -> float:
    """When a process first evaluated that was not there before."""

    def new() -> list[Path]:
        return [path for path in (traces / "seen").iterdir() if int(path.name) not in known_pids]

    return min(path.stat().st_mtime for path in wait_for(process, traces, new))


def read_result(process: subprocess.Popen[bytes], traces: Path) -> dict[str, Any]:
    """What the search left when it had ended."""
    path = traces / "found.json"
    wait_for(process, traces, path.exists)
    outcome: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return outcome


def show(result: dict[str, Any]) -> list[BenchTable]:
    rows = [
        (
            CASES[case],
            str(counts["kills"]),
            "yes" if counts["same"] else "no",
            str(counts["lost"]),
            f"{counts['median']:.1f}",
            f"{counts['worst']:.1f}",
        )
        for case, counts in result["cases"].items()
    ]
    headers = ("killed", "times", "same bits in the end", "generations lost", "s until another works", "at worst")
    return [
        BenchTable(
            "Killed in the middle of a generation", headers, rows, notes=missing_library_notes(result["missing"])
        )
    ]
