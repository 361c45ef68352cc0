"""Ctrl-C, SIGTERM and SIGHUP at any moment: what was learned is saved, and the same call goes on to the same bits."""

from __future__ import annotations

import signal
from pathlib import Path

from doxa.engine.checkpoint import CHECKPOINT
from doxa.errors import DoxaError
from doxa.runs.check import check_run
from doxa_bench.faults import work
from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.kinds.heard import Heard
from doxa_bench.faults.kinds.kills import (
    Task,
    choose_task,
    finish,
    has_succeeded,
    judge_saved,
    reference,
    words_of,
)
from doxa_bench.faults.processes.jobs import Ending, Job

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CONSOLE = 4  # each so manieth case of `doxa fit` is a console of its own
STARTING = 3.0  # seconds in which a console imports what it needs


class Signals:
    """A signal to end, and the same call again."""

    asks = "Ctrl-C, SIGTERM and SIGHUP at any moment; the exit code says which, and the same call goes on"
    share = 2.0

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        rng, outcome = case.rng(), Outcome()
        task = choose_task(case.number, rare=False)
        expected, number = reference(task, workshop), rng.choice(SIGNALS)
        with workshop.folder() as folder:
            console = "table" in task.arguments and rng.randrange(CONSOLE) == 0
            moment = rng.uniform(0, expected.seconds + (STARTING if console else 0.0))
            ending = workshop.run(_job(task, folder, workshop, (int(number), moment), console))
            outcome.count(f"{number.name}{' to a console' if console else ''}")
            outcome.judge(ending, f"{task.name} and {number.name}")
            heard = Heard()
            judge_saved(task, ending, folder, heard, outcome)
            if not has_succeeded(ending):
                outcome.count("ended by a signal")
                judge_exit(task, ending, folder, number, heard, outcome)
            finish(task, folder, workshop, expected, outcome, heard)
        return outcome


def _job(task: Task, folder: Path, workshop: Workshop, moment: tuple[int, float], console: bool) -> Job:
    job = task.job(folder, workshop, signal_after=moment, fault={"root": str(folder)})
    if not console:
        return job
    return Job(command=work.fit_command(**job.arguments), signal_after=moment)


def judge_exit(
    task: Task, ending: Ending, folder: Path, number: signal.Signals, heard: Heard, outcome: Outcome
) -> None:
    """It ends as the signal says, with 128 and its number, and all that was done is saved.

    The signal itself may end it where there is nothing to save: before the first unit, and after the last is saved. A
    console does not tell of its units: there it may until there is a checkpoint, and again when its run is sealed.
    """
    code = ending.value["exit"] if isinstance(ending.value, dict) else ending.exit
    what = f"{task.name} ended with {code} after {number.name}"
    if code not in (128 + number, -number):
        outcome.fail("lost", f"{what}: {words_of(ending)}")
    elif code == 128 + number and not words_of(ending).strip():
        outcome.fail("silent", f"{what} without a word")
    elif code == -number:
        outcome.count("of these with nothing to save")
        if not ending.saved and has_checkpoint_below(folder) and not is_sealed(folder / "run" / "run"):
            outcome.fail("lost", f"{what}, with a checkpoint and without a word")
    for words in heard.unsaved():
        outcome.fail("lost", f"{what}: {words}")


def has_checkpoint_below(folder: Path) -> bool:
    """Whether any work in a folder was saved."""
    return any(folder.rglob(CHECKPOINT))


def is_sealed(run: Path) -> bool:
    """Whether a run came to its end, and is whole."""
    try:
        return check_run(run).state == "sealed"
    except DoxaError:
        return False
