"""What a case is, and what comes of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from doxa.errors import BadInput
from doxa_bench.faults.processes.audit import traces
from doxa_bench.faults.processes.jobs import Ending, Job

# What may be wrong with a case, each counted by itself. All of them are to be none.
PROBLEMS = {
    "lost": "saved work that cannot be gone on with or is gone, or a remnant that stays",
    "different": "a result that is not the undisturbed one, to the bit",
    "silent": "damage that changed what is said, without a word",
    "executed": "code run, or a process started, by what was read",
    "tracebacks": "an error that is none of Doxa's, or a traceback on the screen",
    "faults": "exit code 70",
    "hung": "no answer in time, or more memory than allowed",
}
SHOWN = 300  # characters of a failure's text


@dataclass(frozen=True)
class Case:
    """One attempt, a pure function of these three."""

    seed: int
    kind: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.number}"

    def rng(self, purpose: str = "") -> random.Random:
        """Random numbers of this case alone, the same ones in every run."""
        return random.Random(f"{self.seed} {self.kind} {self.number} {purpose}")


@dataclass
class Outcome:
    """What was tried in a case, in numbers by name, and what went wrong, as pairs of a problem and a text."""

    tried: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[str, str]] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        self.tried[what] = self.tried.get(what, 0) + number

    def fail(self, problem: str, text: str) -> None:
        if problem not in PROBLEMS:
            raise BadInput(f"{problem!r} is not counted; there is: {', '.join(PROBLEMS)}")
        self.failures.append((problem, " ".join(text.split())[:SHOWN]))

    def judge(self, ending: Ending, what: str) -> None:
        """Note what is wrong with any ending, whatever was asked: hanging, running code, foreign errors, exit 70."""
        if ending.hung:
            self.fail("hung", f"{what}: no end in time")
        for event in ending.executed:
            self.fail("executed", f"{what}: {event}")
        if ending.error is not None and not ending.error["doxa"]:
            problem = "hung" if ending.error["type"] == "MemoryError" else "tracebacks"
            self.fail(problem, f"{what}: {ending.error['type']}: {ending.error['message']}")
        elif "Traceback (most recent call last)" in ending.screen:
            self.fail("tracebacks", f"{what}: {ending.screen[-SHOWN:]}")
        if ending.exit == 70 or ending.value == {"exit": 70}:
            self.fail("faults", f"{what}: {ending.screen[-SHOWN:]}")

    def judge_traces(self, folder: Path, what: str) -> None:
        """Note files that code from hostile input has left."""
        for name in traces(folder):
            self.fail("executed", f"{what}: there is {name}")


class Workshop(Protocol):
    """Where cases are tried: what runs jobs, and folders to work in."""

    def run(self, job: Job) -> Ending:
        """Run a job in a process that may die of it."""
        ...

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A new folder, removed afterwards."""
        ...

    def shared(self, name: str, make: Any) -> Any:
        """What many cases need and is made once, from a function of the workshop."""
        ...


class Kind(Protocol):
    """A kind of cases."""

    @property
    def asks(self) -> str:
        """What is tried, for the page."""
        ...

    @property
    def share(self) -> float:
        """Of the time, beside the others."""
        ...

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        """Try one."""
        ...
