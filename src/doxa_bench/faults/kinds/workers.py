"""Workers of a pool that are killed or stopped while they evaluate: others do their work, to the same bits."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from doxa.search import engines
from doxa_bench.faults import work
from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.kinds.kills import words_of
from doxa_bench.faults.processes.jobs import Job

SECONDS = 0.01  # an evaluation
SILENCE = 3.0  # seconds after which a worker that says nothing is given up
MOMENTS = 0.6  # seconds of a search in which it may happen
TIMEOUT = 180.0


class Workers:
    """A worker, or two one after the other, killed or stopped."""

    asks = "workers of a pool killed (SIGKILL) and frozen (SIGSTOP) in the middle of a search"
    share = 2.5

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        outcome = Outcome()
        expected = workshop.shared("an undisturbed search", _undisturbed)
        frozen = case.number % 2 == 1
        with workshop.folder() as folder:
            arguments = {"folder": str(folder), "frozen": frozen, "seed": f"{case.seed} {case.number}"}
            call = "doxa_bench.faults.kinds.workers:find_disturbed"
            ending = workshop.run(Job(call, arguments, timeout=TIMEOUT))
        what = f"a search whose worker is {'frozen' if frozen else 'killed'}"
        outcome.count("workers frozen" if frozen else "workers killed", (ending.value or {}).get("struck", 0))
        outcome.judge(ending, what)
        if not ending.finished:
            outcome.fail("lost", f"{what}: {words_of(ending)}")
        elif ending.value["found"] != expected:
            outcome.fail("different", f"{what} came to another end")
        return outcome


def _undisturbed(workshop: Workshop) -> str:
    with workshop.folder() as folder:
        found = workshop.run(Job(f"{work.__name__}:find", {"folder": str(folder), "pool": False})).value
        assert isinstance(found, str)
        return found


@dataclass(frozen=True)
class Traced:
    """The square, evaluated slowly, by processes that leave their number."""

    folder: Path

    def __call__(self, w: Tensor) -> Tensor:
        (self.folder / str(os.getpid())).touch()
        time.sleep(SECONDS)
        return work.square(w)


def find_disturbed(folder: str, frozen: bool, seed: str) -> dict[str, object]:
    """A search by a pool, one or two of whose workers are struck; what it found and how many were."""
    seen, struck = Path(folder) / "seen", list[int]()
    seen.mkdir()
    arguments = (random.Random(seed), seen, signal.SIGSTOP if frozen else signal.SIGKILL, struck)
    threading.Thread(target=_strike, args=arguments, daemon=True).start()
    found = work.find_with(str(Path(folder) / "run"), Traced(seen), engines.pool(2, silence=SILENCE))
    return {"found": found, "struck": len(struck)}


def _strike(rng: random.Random, seen: Path, number: signal.Signals, struck: list[int]) -> None:
    for _ in range(rng.choice((1, 1, 2))):
        while not (known := [int(path.name) for path in seen.iterdir() if int(path.name) not in struck]):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, MOMENTS))
        victim = rng.choice(sorted(known))
        with suppress(ProcessLookupError):
            os.kill(victim, number)
            struck.append(victim)
