"""Every truncation and a flip in every byte of every file of a run, and of training with a store of samples.

Whatever is damaged, what is asked of it is refused, or answered as before, to the bit. A case is a block of the list of
all damages; when the list is through, the next lap flips other bits.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doxa.engine.checkpoint import CHECKPOINT, PREVIOUS
from doxa.errors import DoxaError
from doxa.runs import open_run, predict_table
from doxa.runs.check import check_run
from doxa_bench.faults import work
from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.processes.jobs import Job
from doxa_bench.faults.processes.listen import listen

RUN = ["--learner", "langevin", "--on-disk", "--epochs", "4", "--batch-size", "16", "--net", "mlp:3", "--draws", "2"]
TABLE = "table.csv"
BLOCKS = {"run": 250, "training": 60}  # what is damaged, and damages in a case; one takes 4 and 25 ms
MEMORY = 1 << 30
LARGEST = 64 << 10  # bytes of a run of which every byte is flipped


class Damage:
    """A block of truncations, flips and removals, one at a time."""

    asks = "every truncation and a flip in every byte of every file of a run and of training, with a store of samples"
    share = 5.0

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        outcome = Outcome()
        subject = [*BLOCKS][case.number % len(BLOCKS)]
        size = BLOCKS[subject]
        pristine = workshop.shared(f"damage {subject}", lambda w: build(subject, w))
        damages = list_damages(pristine)
        blocks = -(-len(damages) // size)
        lap, block = divmod(case.number // len(BLOCKS), blocks)
        with workshop.folder() as folder:
            shutil.copytree(pristine, folder / "subject")
            arguments = {
                "folder": str(folder / "subject"),
                "subject": subject,
                "damages": damages[block * size : (block + 1) * size],
                "seed": f"{case.seed} {lap}",
            }
            job = Job("doxa_bench.faults.kinds.damage:try_damages", arguments, timeout=300, memory=MEMORY, audit=True)
            ending = workshop.run(job)
        outcome.judge(ending, f"damage to {subject}")
        if ending.value is None:
            outcome.fail("tracebacks", f"damage to {subject}: ended with {ending.exit}: {ending.screen}")
            return outcome
        for what, number in ending.value["tried"].items():
            outcome.count(f"{what} of {subject}", number)
        for problem, text in ending.value["failures"]:
            outcome.fail(problem, f"{subject}: {text}")
        through: set[int] = workshop.shared(f"damage {subject}, lap {lap}", lambda w: set())
        through.add(block)
        if len(through) == blocks:
            size = sum(path.stat().st_size for path in _files(pristine))
            outcome.count(f"times through all {size:,} bytes of {subject}")
        return outcome


def build(subject: str, workshop: Workshop) -> Path:
    folder: Path = workshop.shared("folder", lambda w: None) / f"pristine-{subject}"
    folder.mkdir()
    if subject == "training":
        job = Job("doxa_bench.faults.work:learn", {"folder": str(folder / "run"), "learner": "langevin on disk"})
    else:
        work.write_table(folder / TABLE)
        arguments = {"folder": str(folder), "table": str(folder / TABLE), "options": RUN}
        job = Job("doxa_bench.faults.work:fit_table", arguments)
    ending = workshop.run(job)
    size = sum(path.stat().st_size for path in _files(folder))
    if not ending.finished or not 0 < size <= LARGEST:
        raise RuntimeError(f"there is nothing to damage: {size} bytes, {ending}")
    return folder


def _files(folder: Path) -> list[Path]:
    """What may be damaged: all but the user's table, and in training the belief, which is not gone on with."""
    names = (TABLE, "belief.doxa") if folder.name == "pristine-training" else (TABLE,)
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in names)


def list_damages(folder: Path) -> list[tuple[str, str, int]]:
    """All of them: the file, what is done to it, and where."""
    damages: list[tuple[str, str, int]] = []
    for path in _files(folder):
        name, size = str(path.relative_to(folder)), path.stat().st_size
        damages.append((name, "removal", 0))
        damages += ((name, what, position) for position in range(size) for what in ("truncation", "flip"))
    return damages


@dataclass
class Said:
    """What was said of something damaged: an answer or a refusal, warnings, and the unit from which it went on."""

    answer: dict[str, str] | None = None
    refusal: str = ""
    warnings: list[str] = field(default_factory=list)
    resumed: int | None = None


def try_damages(folder: str, subject: str, damages: list[tuple[str, str, int]], seed: str) -> dict[str, Any]:
    """Do each damage, ask, and undo it; how many there were, and what went wrong."""
    tried: dict[str, int] = {}
    failures: list[tuple[str, str]] = []
    units: list[int] = []
    if subject == "training":
        listen(lambda event, name, unit: units.append(int(unit)) if event == "resumed" else None, folder)
    expected = ask(subject, folder, units).answer
    assert expected is not None
    for name, what, position in damages:
        path, where = Path(folder) / name, f"{what} at {position} of {name}"
        tried[f"{what}s"] = tried.get(f"{what}s", 0) + 1
        with damaged(path, what, position, random.Random(f"{seed} {name} {position}")):
            try:
                said = ask(subject, folder, units)
                found = [*JUDGED[subject](Path(folder), name, what, said)] if subject in JUDGED else []
            except Exception as error:
                failures.append(("tracebacks", f"{where}: {type(error).__name__}: {error}"))
                continue
        if said.answer is None:
            tried["refused"] = tried.get("refused", 0) + 1
        elif said.answer != expected:
            failures.append(("silent", f"{where} changed {_changed(expected, said.answer)}"))
        elif subject == "run":
            tried["seen by `doxa runs check` alone"] = tried.get("seen by `doxa runs check` alone", 0) + 1
        failures += [(problem, f"{where}: {text}") for problem, text in found]
    return {"tried": tried, "failures": failures[:100]}


def ask(subject: str, folder: str, units: list[int]) -> Said:
    """What is asked of a subject, and all that is said meanwhile."""
    said = Said()
    units.clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            said.answer = ASKED[subject](Path(folder))
        except DoxaError as error:
            said.refusal = str(error)
    said.warnings = [str(warning.message) for warning in told]
    said.resumed = max(units, default=None)
    return said


class damaged:
    """A file as it is after a damage, and as it was again afterwards; others that were written meanwhile are undone."""

    def __init__(self, path: Path, what: str, position: int, rng: random.Random) -> None:
        self.path, self.what, self.position, self.rng = path, what, position, rng

    def __enter__(self) -> None:
        self.content = self.path.read_bytes()
        if self.what == "removal":
            self.path.unlink()
        elif self.what == "truncation":
            os.truncate(self.path, self.position)
        else:
            changed = bytearray(self.content)
            changed[self.position] ^= 1 << self.rng.randrange(8)
            self.path.write_bytes(changed)

    def __exit__(self, *error: object) -> None:
        self.path.unlink(missing_ok=True)  # not written into: rows of the damaged one may still be known by its number
        self.path.write_bytes(self.content)


def _changed(expected: dict[str, str], answer: dict[str, str]) -> str:
    return ", ".join(name for name in expected if answer.get(name) != expected[name])


def ask_run(folder: Path) -> dict[str, str]:
    """All that a run says: its predictions, its result, and its own words."""
    run = open_run(folder / "run")
    columns = predict_table(run, NEW_ROWS, samples=3, new="allow")
    result = run.result()
    return {
        "predictions": "; ".join(f"{name} {values.tolist()}" for name, values in columns.items()),
        "the result": json.dumps(result, sort_keys=True),
        "the words of the run": json.dumps(run.spec, sort_keys=True),
    }


def judge_run(folder: Path, name: str, what: str, said: Said) -> Iterator[tuple[str, str]]:
    """Whether or not a prediction depends on a file, `doxa runs check` says how it is with it."""
    try:
        found = check_run(folder / "run")
    except DoxaError as error:
        if not str(error).strip():
            yield "silent", "doxa runs check refuses it without a word"
        return
    states = {file.name: file.state for file in found.files}
    state = states.get(Path(name).relative_to("run").as_posix())
    if state not in (("missing", "removed") if what == "removal" else ("damaged",)):
        yield "silent", f"doxa runs check calls the file {state}"
    elif state in ("damaged", "missing") and found.is_whole:
        yield "silent", f"doxa runs check calls the run {found.state}"


def ask_training(folder: Path) -> dict[str, str]:
    """What training comes to that is gone on with."""
    copy = folder / "copy"  # going on may mend, and must not mend what is damaged next
    shutil.copytree(folder / "run", copy)
    try:
        return {"what is learned": work.learn(str(copy), "langevin on disk")}
    finally:
        shutil.rmtree(copy)


def judge_training(folder: Path, name: str, what: str, said: Said) -> Iterator[tuple[str, str]]:
    """With one of two checkpoints damaged, the other leads to the same bits, and the damage to the newest is told."""
    if Path(name).name not in (CHECKPOINT, PREVIOUS):
        return
    if said.answer is None:
        yield "lost", f"refused, with another checkpoint intact: {said.refusal}"
    elif not said.resumed:
        yield "lost", "began anew, with another checkpoint intact"
    # One that is not there may have been about to be replaced, which is no damage.
    elif what != "removal" and Path(name).name == CHECKPOINT and not any(CHECKPOINT in text for text in said.warnings):
        yield "silent", "went on from the checkpoint before it without a word"


NEW_ROWS = {"a": [0.1, 0.5, 7.0], "b": ["u", "w", "v"]}
ASKED = {"run": ask_run, "training": ask_training}
JUDGED = {"run": judge_run, "training": judge_training}
