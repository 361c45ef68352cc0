"""The campaign itself: every detector finds the fault that is planted for it, and all cases repeat."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from doxa.errors import BadInput, BrokenFile
from doxa.storage import sealed
from doxa_bench.faults import attempts, campaign, compare
from doxa_bench.faults.contract import Case, Outcome
from doxa_bench.faults.kinds import KINDS, damage, headers, kills, servers
from doxa_bench.faults.kinds.heard import Heard
from doxa_bench.faults.kinds.inputs import command_lines, consoles, made_up, result_files, settings_files, tables
from doxa_bench.faults.processes.audit import CANARY
from doxa_bench.faults.processes.jobs import Ending, Job
from doxa_bench.faults.processes.shim import ERRORS, PHASES
from doxa_bench.faults.workshop import LocalWorkshop
from doxa_bench.settings import BenchSettings


def judged(workshop: LocalWorkshop, call: str, timeout: float = 20.0, **arguments: Any) -> list[str]:
    outcome = Outcome()
    ending = workshop.run(Job(f"planted_faults:{call}", arguments, timeout=timeout, audit=True, memory=500 << 20))
    outcome.judge(ending, call)
    return [problem for problem, _ in outcome.failures]


def test_what_falls_over_runs_code_or_hangs_is_counted(workshop: LocalWorkshop, tmp_path: Path) -> None:
    assert judged(workshop, "count", folder=str(tmp_path)) == []
    assert judged(workshop, "fall_over") == ["tracebacks"]
    assert judged(workshop, "print_traceback") == ["tracebacks"]
    assert judged(workshop, "exit_as_a_fault") == ["faults"]
    assert judged(workshop, "sleep_long", timeout=0.3) == ["hung"]
    assert judged(workshop, "take_memory", megabytes=100) == []
    assert judged(workshop, "take_memory", megabytes=2000) == ["hung"]
    for how in ("process", "code", "pickle", "import", "library", "fork"):
        assert "executed" in judged(workshop, "run_something", how=how), how


def planted(flaw: str) -> kills.Task:
    class Planted(kills.Task):
        def job(self, folder: Path, workshop: Any, **more: Any) -> Job:
            return Job(f"planted_faults:{self.call}", {"folder": str(folder / "run"), **self.arguments}, **more)

    return Planted(f"planted {flaw or 'nothing'}", "count", {"flaw": flaw})


def kill_at(workshop: LocalWorkshop, task: kills.Task, at: int, phase: str) -> list[tuple[str, str]]:
    """What is found after a kill at a certain call."""
    outcome, expected = Outcome(), kills.reference(task, workshop)
    with workshop.folder() as folder:
        ending = workshop.run(task.job(folder, workshop, fault={"root": str(folder), "at": at, "phase": phase}))
        assert ending.exit == -signal.SIGKILL
        kills.finish(task, folder, workshop, expected, outcome, Heard())
    return outcome.failures


@pytest.mark.parametrize(
    ("flaw", "problem"),
    [("", None), ("refuses", "lost"), ("remnant", "lost"), ("another file", "different"), ("another end", "different")],
)
def test_what_a_kill_loses_or_changes_is_counted(workshop: LocalWorkshop, flaw: str, problem: str | None) -> None:
    task = planted(flaw)
    calls = kills.reference(task, workshop).calls if flaw != "remnant" else 6
    found = {p for at in range(2, calls + 1) for phase in PHASES for p, _ in kill_at(workshop, task, at, phase)}
    assert found == ({problem} if problem else set())


def test_a_checkpoint_that_is_gone_is_counted(workshop: LocalWorkshop) -> None:
    """Removed before the next one is in its place: a kill in between loses what had been saved."""
    outcome, found = Outcome(), []
    for at in range(1, 10):
        with workshop.folder() as folder:
            fault = {"root": str(folder), "at": at, "phase": "after"}
            ending = workshop.run(Job("planted_faults:save_badly", {"folder": str(folder / "run")}, fault))
            kills.judge_saved(planted(""), ending, folder, Heard(), outcome)
            found.append(len(outcome.failures))
    assert found[-1] > 0


def test_the_shim_meets_every_way_to_the_disk(workshop: LocalWorkshop) -> None:
    with workshop.folder() as folder:
        arguments = {"folder": str(folder / "run")}
        all_calls = workshop.run(Job("planted_faults:count", arguments, {"root": str(folder)}))
        assert all_calls.finished
        assert all_calls.calls == 1 + 3 * 3  # the folder; each file is opened, written to and moved
        assert [event for event, _, _ in all_calls.saved] == ["saving", "saved"] * 3
        elsewhere = workshop.run(Job("planted_faults:count", arguments, {"root": str(folder / "other")}))
        assert elsewhere.calls == 0
    for action in ERRORS:
        with workshop.folder() as folder:
            fault = {"root": str(folder), "at": 3, "phase": "half", "action": action}
            failed = workshop.run(Job("planted_faults:count", {"folder": str(folder / "run")}, fault))
            assert failed.error is not None
            assert failed.error["message"].startswith(f"[Errno {ERRORS[action]}]")


def test_a_newly_started_process_is_killed_as_a_fork_is(workshop: LocalWorkshop) -> None:
    with workshop.folder() as folder:
        fault = {"root": str(folder), "at": 3, "phase": "half"}
        ending = workshop.run(Job("planted_faults:count", {"folder": str(folder)}, fault, separate=True))
        assert (ending.exit, ending.value) == (-signal.SIGKILL, None)
        # What it imports is there before its time begins to count.
        early = Job(
            "slow_imports:write", {"folder": str(folder)}, signal_after=(int(signal.SIGKILL), 0.5), separate=True
        )
        assert workshop.run(early).exit == -signal.SIGKILL
        assert (folder / "written").exists()
        late = Job("planted_faults:sleep_long", signal_after=(int(signal.SIGTERM), 0.05), separate=True)
        assert workshop.run(late).exit == -signal.SIGTERM


@pytest.mark.parametrize(
    ("reader", "found"),
    [("trusting", {"silent"}), ("clumsy", {"tracebacks"}), ("careful", set())],
)
def test_damage_that_nobody_notices_is_counted(
    reader: str, found: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that ignores the seal, one that falls over it, and one that refuses what does not match."""
    (tmp_path / "file").write_bytes(b"abc" + hashlib.sha256(b"abc").digest())

    def ask(folder: Path) -> dict[str, str]:
        try:
            content = (folder / "file").read_bytes()
        except FileNotFoundError:
            raise BrokenFile("there is none") from None
        if reader == "clumsy":
            assert content[3:] == hashlib.sha256(content[:3]).digest()
        if reader == "careful" and content[3:] != hashlib.sha256(content[:3]).digest():
            raise BrokenFile("it is damaged")
        return {"words": content.hex()}

    monkeypatch.setitem(damage.ASKED, "planted", ask)
    damages = damage.list_damages(tmp_path)
    assert len(damages) == 1 + 2 * 35
    done = damage.try_damages(str(tmp_path), "planted", damages, "0")
    assert {problem for problem, _ in done["failures"]} == found
    assert done["tried"]["flips"] == done["tried"]["truncations"] == 35
    assert done["tried"].get("refused", 0) == (71 if reader == "careful" else 1)
    assert damage.list_damages(tmp_path) == damages  # all of it is undone


@pytest.mark.parametrize(("reader", "found"), [("trusting", "silent"), ("hungry", "hung"), ("clumsy", "tracebacks")])
def test_hostile_headers_that_are_believed_are_counted(
    reader: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(path: Path) -> None:
        header, _ = headers.take_apart(path)
        if reader == "hungry" and header["version"] != 1:
            raise MemoryError
        if reader == "clumsy":
            assert header["version"] == 1

    def make(folder: Path) -> Path:
        (folder / "run").mkdir()
        sealed.write(folder / "run" / "file.doxa", "planted", {"a": 1}, {"mean": torch.zeros(3)})
        return folder / "run" / "file.doxa"

    monkeypatch.setitem(headers.SUBJECTS, "planted", (make, ask))
    done = headers.try_headers(str(tmp_path), "planted", "0", 30)
    assert found in {problem for problem, _ in done["failures"]}
    assert done["count"] == 30


def test_attempts_that_fall_over_hang_or_are_believed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "SECONDS", 0.5)
    monkeypatch.setattr(attempts, "MEMORY", 50 << 20)

    def refuse() -> None:
        raise BrokenFile("no")

    def fall() -> None:
        raise RecursionError

    def exit_from_within() -> None:
        sys.exit(3)

    def believe() -> None:
        raise attempts.Accepted("all of it")

    def hang() -> None:
        while True:
            pass

    def feast() -> None:
        bytearray(os.urandom(1) * (200 << 20))

    tries = {"a": refuse, "b": int, "c": fall, "d": exit_from_within, "e": believe, "f": hang, "g": feast}
    done = attempts.try_each(tries.items())
    found = {text[0]: problem for problem, text in done["failures"]}
    assert found.pop("g", "hung") == "hung"  # unless this process has been as large before
    assert found == {"c": "tracebacks", "d": "tracebacks", "e": "silent", "f": "hung"}
    assert (done["tried"]["refused"], done["count"]) == (1, 7)


def test_downloads_that_trust_the_server_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def trust(file: Any, target: Path, **_: Any) -> None:
        with socket.create_connection(("127.0.0.1", int(file.url.split(":")[2].split("/")[0]))) as connection:
            connection.sendall(b"GET /file HTTP/1.1\r\n\r\n")
            received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        target.write_bytes(received.partition(b"\r\n\r\n")[2])

    for name, is_wrong in (("is as it should be", False), ("sends another file", True), ("ends too soon", True)):
        monkeypatch.setattr(servers, "download", trust)
        done = attempts.try_each([(name, partial(servers.fetch, tmp_path / "a", name, random.Random(0)))])
        assert [problem for problem, _ in done["failures"]] == ["silent"] * is_wrong, name
        monkeypatch.undo()
        done = attempts.try_each([(name, partial(servers.fetch, tmp_path / "a", name, random.Random(0)))])
        assert done["failures"] == []
        assert done["tried"] == ({"refused": 1} if is_wrong else {"answered": 1})


def test_what_is_made_up_is_the_same_each_time() -> None:
    for make in (
        tables.make_up_table,
        command_lines.make_up_line,
        settings_files.make_up_settings,
        lambda rng: result_files.exchange(rng, b'{"a": [1, {"b": 2}]}'),
    ):
        assert [make(random.Random(k)) for k in range(40)] == [make(random.Random(k)) for k in range(40)]
        assert len({repr(make(random.Random(k))) for k in range(40)}) > 20
    lines = [command_lines.make_up_line(random.Random(k)) for k in range(300)]
    for line in lines:  # nothing is written beyond the folder, and nothing runs for minutes
        after = [value for option, value in itertools.pairwise(line) if option == "--out"]
        assert not any(os.path.isabs(value) for value in after), line
        if {*line} & {*command_lines.LONG} & {*command_lines.commands(), "get"}:
            before = line[: line.index(command_lines.UNKNOWN)]
            assert not any(each.startswith("-") for each in before), "an option before it takes it for its value"


def test_a_command_that_ends_as_a_fault_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import doxa_cli.app

    for code, words, found in ((70, "a fault", "faults"), (1, "Traceback (most recent call last)", "tracebacks")):
        monkeypatch.setattr(doxa_cli.app, "main", lambda line, code=code, words=words: (print(words), code)[1])
        done = attempts.try_each([("a line", partial(command_lines.run_line, ["version"]))])
        assert [problem for problem, _ in done["failures"]] == [found]
    monkeypatch.setattr(doxa_cli.app, "main", lambda line: print("unexpected TooSlow") or 70)
    with pytest.raises(attempts.TooSlow):
        command_lines.run_line(["version"])
    monkeypatch.setattr(doxa_cli.app, "main", lambda line: 2)
    assert command_lines.run_line(["version"]) == "refused as usage"


@pytest.mark.parametrize("how", ["touch", "import", "nothing"])
def test_code_that_a_console_runs_is_counted(how: str, workshop: LocalWorkshop) -> None:
    """A console that evaluates what it is given, or imports what it names, as its files tell."""

    class Careless:
        shared, folder = workshop.shared, workshop.folder

        def run(self, job: Job) -> Any:
            code = {"touch": made_up.CODE, "import": f"import {CANARY}", "nothing": ""}[how]
            subprocess.run([sys.executable, "-c", code], cwd=job.within, check=True)
            return Ending()

    outcome = consoles.Consoles().try_case(Case(0, "consoles", 0), Careless())
    assert [problem for problem, _ in outcome.failures] == ["executed"] * (how != "nothing")


def test_cases_repeat_and_kinds_take_turns() -> None:
    assert Case(1, "kills", 7).rng().random() == Case(1, "kills", 7).rng().random()
    assert Case(1, "kills", 7).rng().random() != Case(2, "kills", 7).rng().random()
    assert campaign.select_cases("kills:7") == {"kills": 7}
    assert campaign.select_cases("") == dict.fromkeys(KINDS)
    with pytest.raises(BadInput, match="did you mean 'kills'"):
        campaign.select_cases("kill")
    with pytest.raises(BadInput, match="KIND:NUMBER"):
        campaign.select_cases("kills:x")
    with pytest.raises(BadInput, match="minutes must be a positive"):
        next(campaign.measure(BenchSettings(minutes=0.0)))
    wanted = dict.fromkeys(KINDS)
    planned = list(campaign.next_cases(campaign.plan_cases(0, wanted, 2), dict.fromkeys(KINDS, 0.0)))
    assert [case.kind for case in planned[: len(KINDS)]] == [*KINDS]
    assert len({(case.kind, case.number) for case in planned}) == len(planned) == 2 * len(KINDS)


def test_times_are_no_difference_and_anything_else_is(tmp_path: Path) -> None:
    def digest(name: str, content: Any) -> str:
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
        return compare.file_digest(tmp_path / name)

    one = {"score": 1.0, "stamp": {"seconds": 9.8}, "seal": "0" * 64}
    assert digest("result.json", one) == digest("result.json", {**one, "stamp": {"seconds": 10.1}, "seal": "1" * 64})
    assert digest("result.json", one) != digest("result.json", {**one, "score": 1.5})
    manifest = {"files": {"a": [{"size": 99, "sha256": "0" * 64}]}}
    longer = {"files": {"a": [{"size": 100, "sha256": "1" * 64}]}}
    assert digest("manifest.json", manifest) == digest("manifest.json", longer)
    assert digest("manifest.json", manifest) != digest("manifest.json", {"files": {"b": manifest["files"]["a"]}})
    assert compare.first_difference({"a": "1"}, {"a": "1"}) is None
    assert compare.first_difference({"a": "1"}, {"a": "2"}) == "a is another"
    assert compare.first_difference({"a": "1"}, {}) == "a is missing"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "workers"])
def test_a_slice_of_the_campaign_finds_nothing(kind: str, workshop: LocalWorkshop) -> None:
    """Workers, which take seconds to begin, are killed and frozen in the tests of the engines."""
    result: dict[str, Any] = {"kinds": {}, "failures": []}
    for number in SLICE.get(kind, (0, 1)):
        case = Case(0, kind, number)
        campaign.enter(result, case, campaign.try_case(KINDS[kind], case, workshop), 0.0)
    assert result["failures"] == []
    assert sum(result["kinds"][kind]["tried"].values()) > 0


# Of kills, those of a fork and of an interpreter of its own.
SLICE = {"kills": (1, 2, 4, 9), "disks": (1, 6), "signals": (1, 2), "lines": (0,), "consoles": (1,), "tables": (0,)}
