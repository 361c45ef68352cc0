"""What becomes of a search whose workers, or which itself, are killed or frozen, and how long until it goes on?

One of two workers is killed (SIGKILL), or stopped (SIGSTOP) and never woken, in the middle of an evaluation; when
another evaluates in its place, the next, ten times in one search. The result is held, bit for bit, against that of a
search that nobody disturbed. Then the process that leads a pool is killed as often, and started again each time; and
stopped for longer than its workers may be silent, and woken.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doxa_bench import killable_search
from doxa_bench.contenders.library import installed_version
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import NOT_INSTALLED, BenchTable, missing_library_notes

TIMES, GENERATIONS = 10, 400
AGENT_TIMES = 3  # freezes of a rank: torchrun's agent waits half a minute for one that is stopped to end by itself
NAP = 1.5 * killable_search.SILENCE  # seconds for which a leader is stopped
PATIENCE = 120.0  # seconds for another worker to appear, and for the rest of a search
GLANCE = 0.002  # seconds between two looks

KILLED, FROZEN = "killed", "frozen"

# Processes that should not be: those that stay though they were lost, and those that stand in for nobody.
STRAYS = {"left_behind": "workers left behind", "replaced": "replaced in vain"}


@dataclass(frozen=True)
class FaultCase:
    """Whom something befalls, and what."""

    engine: str
    who: str
    how: str
    leader: bool = False

    @property
    def times_name(self) -> str:
        """What its number of times is called."""
        return "kills" if self.how == KILLED else "freezes"


CASES = {
    "pool": FaultCase("pool", "a worker of a pool", KILLED),
    "torchrun": FaultCase("torchrun", "a rank of torchrun", KILLED),
    "ray": FaultCase("ray", "an actor of Ray", KILLED),
    "driver": FaultCase("pool", "the process that leads a pool", KILLED, leader=True),
    "pool frozen": FaultCase("pool", "a worker of a pool", FROZEN),
    "torchrun frozen": FaultCase("torchrun", "a rank of torchrun", FROZEN),
    "ray frozen": FaultCase("ray", "an actor of Ray", FROZEN),
    "driver frozen": FaultCase("pool", "the process that leads a pool, and woken", FROZEN, leader=True),
}


class StoodStill(RuntimeError):
    """A search that ended, or did nothing any more."""


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    times = settings.round_count(TIMES)
    result: dict[str, Any] = {
        "settings": {
            "workers": killable_search.WORKERS,
            "generations": GENERATIONS,
            "perturbations": killable_search.SIZE,
            "weights": killable_search.DIMENSION,
            "seconds_an_evaluation": killable_search.SECONDS,
            "times": times,
            "silence": killable_search.SILENCE,
            "ray": installed_version("ray"),
        },
        "cases": {},
        "missing": {},
    }
    settings.progress("undisturbed")
    undisturbed = run_undisturbed()
    for name, case in CASES.items():
        if not settings.wants(name):
            continue
        if case.engine == "ray" and installed_version("ray") is None:
            result["missing"][name] = {"ray": NOT_INSTALLED}
            continue
        settings.progress(f"{name}: {times} times")
        result["cases"][name] = counts = measure_case(case, times, undisturbed)
        worst = f", worst {counts['worst']:.1f} s" if "worst" in counts else ""
        settings.say(
            f"{name}: {counts[case.times_name]} {case.times_name}, hung: {counts['hung']}, lost: {counts['lost']}, "
            f"same bits: {counts['same']}{''.join(f', {STRAYS[s]}: {counts[s]}' for s in STRAYS if s in counts)}{worst}"
        )
        yield result


def measure_case(case: FaultCase, times: int, undisturbed: dict[str, Any]) -> dict[str, Any]:
    """What a case comes to, or that its search stood still."""
    try:
        if case.leader:
            outcome = (run_with_killed_leader if case.how == KILLED else run_with_frozen_leader)(times)
        else:
            often = min(times, AGENT_TIMES) if (case.engine, case.how) == ("torchrun", FROZEN) else times
            outcome = run_with_lost_workers(case.engine, case.how, often)
    except StoodStill as error:
        return {case.times_name: times, "hung": 1, "same": False, "lost": GENERATIONS, "words": str(error)}
    return compare_with_undisturbed(undisturbed, outcome, case.times_name)


def run_undisturbed() -> dict[str, Any]:
    """The same search by one process."""
    with trace_folder() as traces:
        (traces / "calm").touch()
        with start_search("in_process", traces) as process:
            return read_result(process, traces)


def run_with_lost_workers(engine: str, how: str, times: int) -> dict[str, Any]:
    """What a search comes to whose workers are lost, and how long another took to evaluate in their place."""
    rng, recovery_seconds, victims = random.Random(engine), [], set[int]()
    with trace_folder() as traces, start_search(engine, traces) as process:
        for _ in range(times):
            known_pids = all_worker_pids(process, traces)
            victim, lost_at = strike_one(process, traces, rng, how)
            victims.add(victim)
            recovery_seconds.append(first_new_evaluation(process, traces, known_pids) - lost_at)
        (traces / "calm").touch()
        outcome = {**read_result(process, traces), "seconds": recovery_seconds}
        return {**outcome, "left_behind": sum(_state(victim) not in GONE for victim in victims)}


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


def run_with_frozen_leader(times: int) -> dict[str, Any]:
    """What a search comes to that is itself stopped and woken; its workers must not be blamed for it."""
    rng, recovery_seconds = random.Random("leader"), []
    with trace_folder() as traces, start_search("pool", traces) as process:
        known_pids = all_worker_pids(process, traces)
        for _ in range(times):
            time.sleep(rng.random())
            process.send_signal(signal.SIGSTOP)
            time.sleep(NAP)
            process.send_signal(signal.SIGCONT)
            woken_at = time.time()
            recovery_seconds.append(next_evaluation(process, traces, woken_at) - woken_at)
        blamed = len(all_worker_pids(process, traces) - known_pids)
        (traces / "calm").touch()
        return {**read_result(process, traces), "seconds": recovery_seconds, "replaced": blamed}


def compare_with_undisturbed(
    undisturbed: dict[str, Any], outcome: dict[str, Any], times_name: str = "kills"
) -> dict[str, Any]:
    """What is reported of a search that was disturbed."""
    expected_generations = range(1, GENERATIONS + 1)
    return {
        times_name: len(outcome["seconds"]),
        "hung": 0,
        "same": outcome["bits"] == undisturbed["bits"],
        "lost": len({*expected_generations} - {*outcome["generations"]}),
        "twice": len(outcome["generations"]) - len({*outcome["generations"]}),
        "median": statistics.median(outcome["seconds"]),
        "worst": max(outcome["seconds"]),
        "seconds": outcome["seconds"],
        "by_the_engine": outcome["recovered"],
        **{name: outcome[name] for name in STRAYS if name in outcome},
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
            raise StoodStill(f"the search {'ended' if over else 'stood still'}: {log_tail}")
        time.sleep(GLANCE)
    return observed


def live_processes(traces: Path) -> set[int]:
    """Processes that have evaluated, and have not ended or been stopped."""
    pids = {int(path.name) for path in (traces / "seen").iterdir()}
    return {pid for pid in pids if _state(pid) not in (*GONE, "T")}


GONE = ("Z", "X")


def _state(pid: int) -> str:
    """A process's, in the kernel's letters; X of one that is no longer there."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "X"


def all_worker_pids(process: subprocess.Popen[bytes], traces: Path) -> set[int]:
    """Everyone who was ever seen, once all workers are there."""
    wait_for(process, traces, lambda: len(live_processes(traces)) >= killable_search.WORKERS)
    return {int(path.name) for path in (traces / "seen").iterdir()}


def strike_one(process: subprocess.Popen[bytes], traces: Path, rng: random.Random, how: str) -> tuple[int, float]:
    """Kill or freeze a worker that is in the middle of an evaluation; which, and when that was."""

    def struck() -> int | None:
        victim: int = rng.choice(sorted(live_processes(traces)) or [0])
        if not victim:
            return None
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGSTOP)  # so that it is still evaluating when it is killed
            if (traces / "busy" / str(victim)).exists():
                if how == KILLED:
                    os.kill(victim, signal.SIGKILL)
                return victim
            os.kill(victim, signal.SIGCONT)
        return None

    return wait_for(process, traces, struck), time.time()


def first_new_evaluation(process: subprocess.Popen[bytes], traces: Path, known_pids: set[int]) -> float:
    """When a process first evaluated that was not there before."""

    def new() -> list[Path]:
        return [path for path in (traces / "seen").iterdir() if int(path.name) not in known_pids]

    return min(path.stat().st_mtime for path in wait_for(process, traces, new))


def next_evaluation(process: subprocess.Popen[bytes], traces: Path, after: float) -> float:
    """When any process next began an evaluation."""

    def began() -> float | None:
        times = []
        for path in (traces / "busy").iterdir():
            with suppress(FileNotFoundError):
                times.append(path.stat().st_mtime)
        return max(times, default=0.0) if max(times, default=0.0) > after else None

    return float(wait_for(process, traces, began))


def read_result(process: subprocess.Popen[bytes], traces: Path) -> dict[str, Any]:
    """What the search left when it had ended."""
    path = traces / "found.json"
    wait_for(process, traces, path.exists)
    outcome: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return outcome


def show(result: dict[str, Any]) -> list[BenchTable]:
    headers = (
        *("", "times", "hung", "same bits in the end", "generations lost", *STRAYS.values()),
        *("s until another works", "at worst"),
    )
    notes = missing_library_notes(result["missing"])
    tables: list[BenchTable] = []
    for how, title in ((KILLED, "Killed in the middle of a generation"), (FROZEN, "Frozen in the middle of one")):
        counts_by_case = {name: result["cases"][name] for name in CASES if name in result["cases"]}
        rows = [_row(CASES[name], counts) for name, counts in counts_by_case.items() if CASES[name].how == how]
        if rows:
            tables.append(BenchTable(title, headers, rows, notes=() if tables else notes))
    return tables


def _row(case: FaultCase, counts: dict[str, Any]) -> tuple[str, ...]:
    seconds = [f"{counts[name]:.1f}" if name in counts else "–" for name in ("median", "worst")]
    same = "yes" if counts["same"] else "no"
    strays = [str(counts.get(name, "–")) for name in STRAYS]
    head = (case.who, str(counts[case.times_name]), str(counts.get("hung", 0)), same, str(counts["lost"]))
    return (*head, *strays, *seconds)
