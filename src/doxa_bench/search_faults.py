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

from doxa_bench import faulted
from doxa_bench.contenders.library import installed
from doxa_bench.settings import Settings
from doxa_bench.tables import NOT_INSTALLED, Table, refusals

KILLS, GENERATIONS = 10, 200
PATIENCE = 120.0  # seconds for another worker to appear, and for the rest of a search
GLANCE = 0.002  # seconds between two looks

CASES = {
    "pool": "a worker of a pool",
    "torchrun": "a rank of torchrun",
    "ray": "an actor of Ray",
    "driver": "the process that leads a pool",
}


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    kills = settings.turns(KILLS)
    found: dict[str, Any] = {
        "settings": {
            "workers": faulted.WORKERS,
            "generations": GENERATIONS,
            "perturbations": faulted.SIZE,
            "weights": faulted.DIMENSION,
            "seconds_an_evaluation": faulted.SECONDS,
            "kills": kills,
            "ray": installed("ray"),
        },
        "cases": {},
        "missing": {},
    }
    settings.progress("undisturbed")
    calm = undisturbed()
    for case in CASES:
        if not settings.wants(case):
            continue
        if case == "ray" and installed("ray") is None:
            found["missing"][case] = {"ray": NOT_INSTALLED}
            continue
        settings.progress(f"{case}: {kills} kills")
        other = bereaved(kills) if case == "driver" else disturbed(case, kills)
        found["cases"][case] = held_against(calm, other)
        own = found["cases"][case]
        settings.say(f"{case}: {own['kills']} kills, worst {own['worst']:.1f} s, same bits: {own['same']}")
        yield found


def undisturbed() -> dict[str, Any]:
    """The same search by one process."""
    with folder() as place:
        (place / "calm").touch()
        with started("in_process", place) as process:
            return finished(process, place)


def disturbed(case: str, kills: int) -> dict[str, Any]:
    """What a search comes to whose workers are killed, and how long another took to evaluate in their place."""
    dice, taken = random.Random(case), []
    with folder() as place, started(case, place) as process:
        for _ in range(kills):
            before = at_work(process, place)
            began = kill_one(process, place, dice)
            taken.append(newcomer(process, place, before) - began)
        (place / "calm").touch()
        return {**finished(process, place), "seconds": taken}


def bereaved(kills: int) -> dict[str, Any]:
    """What a search comes to that is itself killed and started again; its workers must end when it does."""
    taken: list[float] = []
    with folder() as place:
        for _ in range(kills):
            with started("pool", place) as process:
                before = at_work(process, place)
                process.kill()
                began = time.time()
                waited(None, place, lambda: not living(place))
            with started("pool", place) as process:
                taken.append(newcomer(process, place, before) - began)
        (place / "calm").touch()
        with started("pool", place) as process:
            return {**finished(process, place), "seconds": taken}


def held_against(calm: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What is reported of a search that was disturbed."""
    wanted = range(1, GENERATIONS + 1)
    return {
        "kills": len(other["seconds"]),
        "same": other["bits"] == calm["bits"],
        "lost": len({*wanted} - {*other["generations"]}),
        "twice": len(other["generations"]) - len({*other["generations"]}),
        "median": statistics.median(other["seconds"]),
        "worst": max(other["seconds"]),
        "seconds": other["seconds"],
        "by_the_engine": other["recovered"],
    }


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        for traces in ("busy", "seen"):
            (Path(name) / traces).mkdir()
        yield Path(name)


@contextmanager
def started(case: str, place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The search as a process, which is ended with all that it started."""
    command = [sys.executable, "-m", "doxa_bench.faulted", case, str(place), str(GENERATIONS)]
    if case == "torchrun":
        run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(faulted.WORKERS)]
        command = [sys.executable, *run, "--max-restarts", "1000", *command[1:]]
    words = (place / "words").open("ab")
    process = subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        words.close()


def waited(process: subprocess.Popen[bytes] | None, place: Path, what: Callable[[], Any]) -> Any:
    """What a look finds when it finds something; an error with the search's own words where it has ended."""
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        over = process is not None and process.poll() not in (None, 0)
        if over or time.monotonic() > end:
            said = (place / "words").read_text(encoding="utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"the search {'ended' if over else 'stood still'}: {said}")
        time.sleep(GLANCE)
    return found


def living(place: Path) -> set[int]:
    """Processes that have evaluated and have not ended."""
    return {int(path.name) for path in (place / "seen").iterdir() if _lives(int(path.name))}


def _lives(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def at_work(process: subprocess.Popen[bytes], place: Path) -> set[int]:
    """Everyone who was ever seen, once all workers are there."""
    waited(process, place, lambda: len(living(place)) >= faulted.WORKERS)
    return {int(path.name) for path in (place / "seen").iterdir()}


def kill_one(process: subprocess.Popen[bytes], place: Path, dice: random.Random) -> float:
    """Kill a worker that is in the middle of an evaluation; when that was."""
    victim = dice.choice(sorted(living(place)))
    busy = place / "busy" / str(victim)

    def killed() -> bool:
        os.kill(victim, signal.SIGSTOP)  # so that it is still evaluating when it is killed
        if busy.exists():
            os.kill(victim, signal.SIGKILL)
            return True
        os.kill(victim, signal.SIGCONT)
        return False

    waited(process, place, killed)
    return time.time()


def newcomer(process: subprocess.Popen[bytes], place: Path, before: set[int]) -> float:
    """When a process first evaluated that was not there before."""

    def new() -> list[Path]:
        return [path for path in (place / "seen").iterdir() if int(path.name) not in before]

    return min(path.stat().st_mtime for path in waited(process, place, new))


def finished(process: subprocess.Popen[bytes], place: Path) -> dict[str, Any]:
    """What the search left when it had ended."""
    path = place / "found.json"
    waited(process, place, path.exists)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def show(found: dict[str, Any]) -> list[Table]:
    rows = [
        (
            CASES[case],
            str(own["kills"]),
            "yes" if own["same"] else "no",
            str(own["lost"]),
            f"{own['median']:.1f}",
            f"{own['worst']:.1f}",
        )
        for case, own in found["cases"].items()
    ]
    heads = ("killed", "times", "same bits in the end", "generations lost", "s until another works", "at worst")
    return [Table("Killed in the middle of a generation", heads, rows, notes=refusals(found["missing"]))]
