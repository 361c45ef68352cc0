"""Processes killed at the k-th call that writes, or at any moment, and the same call again until it is finished."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doxa_bench.faults import work
from doxa_bench.faults.compare import fingerprint, first_difference, remnants
from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.kinds.heard import Heard
from doxa_bench.faults.processes.jobs import Ending, Job
from doxa_bench.faults.processes.shim import PHASES

FIT = ["--batch-size", "16", "--net", "mlp:4", "--draws", "3", "--checkpoint-every", "1"]
SEPARATE = 4  # each so manieth case is of newly started processes
RARE = 4  # in so many rounds one has a pool, whose workers take seconds to begin
KILLS = (1, 1, 1, 2, 3)  # in a row, one of these
SPOILT = 0.25  # share of cases in which the newest checkpoint is damaged too, if there is one before it


@dataclass(frozen=True)
class Task:
    """Work that can be begun, killed and gone on with: a call that takes a folder."""

    name: str
    call: str
    arguments: dict[str, Any] = field(default_factory=dict)
    rare: bool = False

    def job(self, folder: Path, workshop: Workshop, **more: Any) -> Job:
        arguments = {"folder": str(folder / "run"), **self.arguments}
        if "table" in arguments:
            arguments["table"] = str(workshop.shared("table", make_table))
        return Job(f"doxa_bench.faults.work:{self.call}", arguments, **more)


def _fit(name: str, *options: str) -> Task:
    return Task(f"doxa fit, {name}", "fit_table", {"table": "", "options": [*options, *FIT]})


TASKS = [
    *(Task(name, "learn", {"learner": name}) for name in work.LEARNERS),
    Task("fleet", "learn_fleet"),
    Task("search", "find", {"pool": False}),
    Task("search by a pool", "find", {"pool": True}, rare=True),
    Task("bandits", "play"),
    _fit("auto", "--epochs", "2"),
    _fit("variational", "--learner", "variational", "--epochs", "3", "--checkpoint-steps", "2"),
    _fit("samples on disk", "--learner", "langevin", "--on-disk", "--epochs", "4", "--checkpoint-steps", "2"),
]


@dataclass(frozen=True)
class Reference:
    """What a task comes to undisturbed, how often it writes and how long it takes."""

    value: Any
    files: dict[str, str]
    calls: int
    seconds: float


def make_table(workshop: Workshop) -> Path:
    path = workshop.shared("folder", lambda w: None) / "table.csv"
    work.write_table(path)
    return path


def reference(task: Task, workshop: Workshop) -> Reference:
    """The undisturbed task, which is done once."""
    found: Reference = workshop.shared(f"reference of {task.name}", lambda w: _measure(task, w))
    return found


def _measure(task: Task, workshop: Workshop) -> Reference:
    with workshop.folder() as folder:
        workshop.run(task.job(folder / "warm", workshop))  # kernels are compiled, caches filled
        ending = workshop.run(task.job(folder, workshop, fault={"root": str(folder)}))
        if not has_succeeded(ending):
            raise RuntimeError(f"{task.name} does not work undisturbed: {ending}")
        return Reference(ending.value, fingerprint(folder / "run"), ending.calls, ending.took)


class Kills:
    """A kill, or several in a row, and the same call again."""

    share = 14.0
    asks = "kills at calls that write and at any moment; the same call goes on to the same bits"

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        rng, outcome = case.rng(), Outcome()
        task = choose_task(case.number)
        separate = (case.number // len(TASKS) + case.number) % SEPARATE == 0
        expected = reference(task, workshop)
        with workshop.folder() as folder:
            heard = Heard()
            for number in range(rng.choice(KILLS)):
                kill = draw_kill(rng, folder, expected, 1.0 if number == 0 else 0.3)
                job = task.job(folder, workshop, separate=separate, **kill)
                ending = workshop.run(job)
                outcome.count(f"of {task.name}")
                judge_saved(task, ending, folder, heard, outcome)
                if ending.exit != -signal.SIGKILL or ending.hung:
                    _judge_end(task, ending, outcome)
                    break
                outcome.count("kills")
                has_written = any(path.is_file() for path in folder.rglob("*"))
                if has_written:
                    outcome.count("kills after the first write")
                if separate:
                    outcome.count("kills of separately started processes")
                if separate and has_written:
                    outcome.count("kills of separately started processes after the first write")
            spoilt = heard.spoil(folder, rng) if rng.random() < SPOILT else None
            ending = finish(task, folder, workshop, expected, outcome, heard)
            if spoilt is not None:
                judge_spoilt(task, spoilt, ending, heard, outcome)
        return outcome


def choose_task(number: int, rare: bool = True) -> Task:
    """The tasks in turn, the slow ones not every time, or never."""
    task, turn = TASKS[number % len(TASKS)], number // len(TASKS)
    if task.rare and (turn % RARE or not rare):
        return TASKS[turn % len(work.LEARNERS)]
    return task


def draw_kill(rng: random.Random, folder: Path, expected: Reference, share: float = 1.0) -> dict[str, Any]:
    """When and how, within the first share of the work: at a call that writes, or from outside at any moment."""
    if rng.random() < 0.3:
        moment = (int(signal.SIGKILL), rng.uniform(0, share * expected.seconds))
        return {"signal_after": moment, "fault": {"root": str(folder)}}  # without a fault, the shim tells what is saved
    at, phase = rng.randint(1, max(1, round(share * expected.calls))), rng.choice(PHASES)
    return {"fault": {"root": str(folder), "at": at, "phase": phase}}


def _judge_end(task: Task, ending: Ending, outcome: Outcome) -> None:
    """One that was not killed has ended before its time came; anything else is wrong."""
    outcome.count("ended before the kill")
    outcome.judge(ending, task.name)
    if not has_succeeded(ending):
        outcome.fail("lost", f"{task.name} cannot go on after a kill: {words_of(ending)}")


def judge_saved(task: Task, ending: Ending, folder: Path, heard: Heard, outcome: Outcome) -> None:
    """What was put in place must still be there, and be gone on with."""
    for words in (*heard.hear(ending), *heard.missing(folder)):
        outcome.fail("lost", f"{task.name}: {words}")


def judge_spoilt(task: Task, name: str, ending: Ending, heard: Heard, outcome: Outcome) -> None:
    """A newest checkpoint that is damaged is not passed over without a word."""
    if name in heard.resumed:
        outcome.count("newest checkpoints damaged")
        if Path(name).name not in ending.screen:
            outcome.fail("silent", f"{task.name} went on from before {name}, which is damaged, without a word")


def finish(task: Task, folder: Path, workshop: Workshop, expected: Reference, outcome: Outcome, heard: Heard) -> Ending:
    """Go on to the end from where it was heard to be saved, and compare it with that of the undisturbed one."""
    ending = workshop.run(task.job(folder, workshop, fault={"root": str(folder)}))
    outcome.judge(ending, f"{task.name}, gone on with")
    judge_saved(task, ending, folder, heard, outcome)
    if not has_succeeded(ending):
        outcome.fail("lost", f"{task.name} cannot go on: {words_of(ending)}")
        return ending
    if ending.value != expected.value:
        outcome.fail("different", f"{task.name} came to another end")
    if "table" in task.arguments:
        check = workshop.run(Job("doxa_cli.app:main", {"arguments": ["runs", "check", str(folder / "run" / "run")]}))
        if check.value != 0:
            outcome.fail("lost", f"doxa runs check refuses what {task.name} came to: {check.screen}")
    difference = first_difference(expected.files, fingerprint(folder / "run"))
    left = remnants(folder)
    if left:
        outcome.fail("lost", f"{task.name} left {', '.join(left[:5])} behind")
    elif difference is not None:
        outcome.fail("different", f"{task.name}: {difference}")
    return ending


def has_succeeded(ending: Ending) -> bool:
    """Whether a call has returned, and of a command line, with 0."""
    return ending.finished and not (isinstance(ending.value, dict) and ending.value != {"exit": 0})


def words_of(ending: Ending) -> str:
    """What an ending says of itself."""
    return f"{ending.error['type']}: {ending.error['message']}" if ending.error is not None else ending.screen[-300:]
