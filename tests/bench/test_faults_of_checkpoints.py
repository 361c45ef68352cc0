"""The campaign sees checkpoints that are not gone on with, not kept, or passed over without a word."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import pytest

from doxa.engine.checkpoint import CHECKPOINT
from doxa_bench.faults.contract import Outcome
from doxa_bench.faults.kinds import damage, kills, signals
from doxa_bench.faults.kinds.heard import Heard
from doxa_bench.faults.processes.jobs import Ending, Job
from doxa_bench.faults.workshop import LocalWorkshop
from for_runs import learned


def planted(flaw: str) -> kills.Task:
    class Planted(kills.Task):
        def job(self, folder: Path, workshop: Any, **more: Any) -> Job:
            return Job(f"planted_faults:{self.call}", {"folder": str(folder / "run"), **self.arguments}, **more)

    return Planted("planted", "learn", {"flaw": flaw})


def killed(workshop: LocalWorkshop, flaw: str, spoil: bool = False) -> list[tuple[str, str]]:
    """What is found after a kill late in the work, which begins without the flaw, and maybe damage."""
    outcome, heard, expected = Outcome(), Heard(), kills.reference(planted(""), workshop)
    with workshop.folder() as folder:
        fault = {"root": str(folder), "at": expected.calls - 6, "phase": "before"}
        first = planted("" if flaw != "keeps one" else flaw)
        ending = workshop.run(first.job(folder, workshop, fault=fault))
        assert ending.exit == -9
        kills.judge_saved(planted(""), ending, folder, heard, outcome)
        assert min(map(len, heard.units.values())) > 1
        spoilt = heard.spoil(folder, random.Random(0)) if spoil else None
        ending = kills.finish(planted(flaw), folder, workshop, expected, outcome, heard)
        if spoilt is not None:
            kills.judge_spoilt(planted(flaw), spoilt, ending, heard, outcome)
            assert outcome.tried["newest checkpoints damaged"] == 1
    return outcome.failures


@pytest.mark.parametrize(
    ("flaw", "spoil", "problem"),
    [
        ("", False, None),
        ("", True, None),
        ("begins anew", False, "lost"),
        ("does not look", False, "lost"),
        ("keeps one", False, "lost"),
        ("says nothing", True, "silent"),
    ],
)
def test_checkpoints_that_are_of_no_use_are_counted(
    workshop: LocalWorkshop, flaw: str, spoil: bool, problem: str | None
) -> None:
    assert {problem for problem, _ in killed(workshop, flaw, spoil)} == ({problem} if problem else set())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("flaw", "problem"), [("", None), ("dies of signals", "lost"), ("stops unsaved", "lost")])
def test_signals_that_end_without_saving_are_counted(
    workshop: LocalWorkshop, number: signal.Signals, flaw: str, problem: str | None
) -> None:
    outcome, heard = Outcome(), Heard()
    with workshop.folder() as folder:
        arguments = {"folder": str(folder / "run"), "number": int(number), "flaw": flaw}
        ending = workshop.run(Job("planted_faults:interrupt_itself", arguments, fault={"root": str(folder)}))
        assert ending.exit == (-number if flaw == "dies of signals" and number != signal.SIGINT else 128 + number)
        kills.judge_saved(planted(""), ending, folder, heard, outcome)
        signals.judge_exit(planted(""), ending, folder, number, heard, outcome)
    assert {problem for problem, _ in outcome.failures} - {"silent"} == ({problem} if problem else set())


def test_a_console_may_die_of_a_signal_before_its_first_checkpoint_and_after_its_run_is_sealed(tmp_path: Path) -> None:
    def lost() -> int:
        outcome, ending = Outcome(), Ending(exit=-signal.SIGTERM)
        signals.judge_exit(planted(""), ending, tmp_path, signal.SIGTERM, Heard(), outcome)
        return [problem for problem, _ in outcome.failures].count("lost")

    assert lost() == 0
    run = tmp_path / "run" / "run"
    learned(run)
    assert list(tmp_path.rglob(CHECKPOINT))
    assert lost() == 0
    (run / "manifest.json").unlink()
    assert lost() == 1


@pytest.mark.parametrize(
    ("subject", "flaw", "problems"),
    [
        ("training", "", set()),
        ("training", "begins anew", {"lost"}),
        ("training", "refuses", {"lost"}),
        ("training", "says nothing", {"silent"}),
        ("run", "", set()),
        ("run", "checks nothing", {"silent"}),
    ],
)
def test_damaged_checkpoints_that_are_of_no_use_or_not_seen_are_counted(
    workshop: LocalWorkshop, subject: str, flaw: str, problems: set[str]
) -> None:
    pristine = workshop.shared(f"damage {subject}", lambda w: damage.build(subject, w))
    everything = [each for each in damage.list_damages(pristine) if Path(each[0]).name == "checkpoint.doxa"]
    damages = [everything[0], *everything[1 :: len(everything) // 6 | 1]]
    assert {what for _, what, _ in damages} == {"removal", "truncation", "flip"}
    arguments = {"folder": str(pristine), "subject": subject, "damages": damages, "seed": "0", "flaw": flaw}
    ending = workshop.run(Job("planted_faults:damage", arguments))
    assert ending.finished, ending
    assert {problem for problem, _ in ending.value["failures"]} == problems, ending.value["failures"]
