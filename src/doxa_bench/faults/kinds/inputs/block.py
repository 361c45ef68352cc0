"""A block of attempts as a case, beside a small run, its table and its result."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from doxa_bench.faults import work
from doxa_bench.faults.attempts import note_block
from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.processes.jobs import Job

MODULE = "doxa_bench.faults.kinds.inputs"
MEMORY = 3 << 30
RUN = ["--learner", "variational", "--epochs", "1", "--batch-size", "16", "--net", "mlp:2", "--draws", "2"]


@dataclass(frozen=True)
class Block:
    """So many attempts of a module's `attempt_all(folder, seed, number)`, in one process."""

    asks: str
    share: float
    module: str
    what: str
    size: int

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        outcome = Outcome()
        pristine = workshop.shared("inputs", prepare)
        with workshop.folder() as folder:
            shutil.copytree(pristine, folder / "a" / "b")  # deep enough for `..` to stay inside
            os.mkfifo(folder / "a" / "b" / "fifo")
            arguments = {"folder": str(folder / "a" / "b"), "seed": f"{case.seed} {case.number}", "number": self.size}
            call = f"{MODULE}.{self.module}:attempt_all"
            within = arguments["folder"]
            job = Job(call, arguments, timeout=600, memory=MEMORY, audit=True, within=str(within))
            note_block(outcome, workshop.run(job), self.what)
            outcome.judge_traces(folder, self.what)
        return outcome


def prepare(workshop: Workshop) -> Path:
    """A folder with a table, a run that was learned from it, and a folder that is empty."""
    folder: Path = workshop.shared("folder", lambda w: None) / "inputs"
    (folder / "empty").mkdir(parents=True)
    work.write_table(folder / "table.csv")
    arguments = {"folder": str(folder), "table": str(folder / "table.csv"), "options": RUN}
    ending = workshop.run(Job(f"{work.__name__}:fit_table", arguments))
    if ending.value != {"exit": 0}:
        raise RuntimeError(f"the run to be asked was not made: {ending}")
    return folder
