"""Many attempts in one process: each must be refused in a sentence or answered, soon and without much memory."""

from __future__ import annotations

import resource
import signal
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from doxa.errors import DoxaError
from doxa_bench.faults.contract import Outcome
from doxa_bench.faults.processes.jobs import Ending

SECONDS = 10.0  # for one attempt
MEMORY = 300 << 20  # bytes by which one attempt may raise the highest that was ever used
LISTED = 50  # failures of a block that are told


class TooSlow(BaseException):
    """An attempt that was not over in time; nothing of Doxa's catches it."""


class Accepted(Exception):
    """What should have been refused was not, or was answered with something else."""


class ExitAsFault(Exception):
    """A command ended with 70."""


def try_each(attempts: Iterable[tuple[str, Callable[[], Any]]]) -> dict[str, Any]:
    """Make attempts, each with a name; how many were refused and answered, and what went wrong."""
    tried: dict[str, int] = {}
    failures: list[tuple[str, str]] = []

    def late(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, late)
    try:
        for name, attempt in attempts:
            peak = _peak()
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    word = attempt() or "answered"
            except DoxaError:
                word = "refused"
            except TooSlow as error:
                word = "failed"
                failures.append(("hung", f"{name}: {str(error) or f'no end in {SECONDS:g} s'}"))
            except MemoryError:
                word = "failed"
                failures.append(("hung", f"{name}: took more memory than there was"))
            except Accepted as error:
                word = "failed"
                failures.append(("silent", f"{name}: {error}"))
            except ExitAsFault as error:
                word = "failed"
                failures.append(("faults", f"{name}: {error}"))
            except BaseException as error:
                word = "failed"
                failures.append(("tracebacks", f"{name}: {type(error).__name__}: {error}"))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if word != "failed" and _peak() - peak > MEMORY:
                failures.append(("hung", f"{name}: took {(_peak() - peak) >> 20} MB"))
            tried[word] = tried.get(word, 0) + 1
    finally:
        signal.signal(signal.SIGALRM, before)
    return {"tried": tried, "failures": failures[:LISTED], "count": sum(tried.values())}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def note_block(outcome: Outcome, ending: Ending, what: str) -> None:
    """What a job of attempts came to."""
    outcome.judge(ending, what)
    if not isinstance(ending.value, dict) or "count" not in ending.value:
        if not outcome.failures:
            outcome.fail("tracebacks", f"{what} ended with {ending.exit}: {ending.error or ending.screen}")
        return
    outcome.count(what, ending.value["count"])
    for word, number in ending.value["tried"].items():
        outcome.count(f"{what}: {word}", number)
    for problem, text in ending.value["failures"]:
        outcome.fail(problem, text)
