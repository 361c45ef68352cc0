"""Disks that are full, broken or closed, from the k-th call that writes on, or at that call alone."""

from __future__ import annotations

from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.kinds.heard import Heard
from doxa_bench.faults.kinds.kills import choose_task, finish, has_succeeded, judge_saved, reference, words_of
from doxa_bench.faults.processes.shim import ERRORS


class Disks:
    """A call that fails to write, and the same call again when there is room."""

    asks = "full, broken and closed disks at calls that write, half-way through it too; then the same call again"
    share = 1.5

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        rng, outcome = case.rng(), Outcome()
        task = choose_task(case.number, rare=False)
        expected = reference(task, workshop)
        with workshop.folder() as folder:
            fault = {
                "root": str(folder),
                "at": rng.randint(1, expected.calls),
                "phase": rng.choice(("before", "half")),
                "action": rng.choice([*ERRORS]),
                "lasting": rng.random() < 0.5,
            }
            ending = workshop.run(task.job(folder, workshop, fault=fault))
            outcome.count(f"disks with {fault['action']}")
            what = f"{task.name} with {fault['action']} at call {fault['at']} of {expected.calls}"
            outcome.judge(ending, what)
            if not has_succeeded(ending) and not words_of(ending).strip():
                outcome.fail("silent", f"{what}: failed without a word")
            heard = Heard()
            judge_saved(task, ending, folder, heard, outcome)
            finish(task, folder, workshop, expected, outcome, heard)
        return outcome
