"""Checkpoints of a damaged run are judged by their own seals: what a mend has trained is never thrown away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import for_runs
from doxa.engine.checkpoint import Checkpointer
from doxa.errors import BrokenFile
from doxa.runs import Plan
from doxa.runs.check import check_run
from for_runs import bits, flip

EPOCHS = 8
PLAN = Plan(net="mlp:2", learner="point", epochs=EPOCHS, draws=2, checkpoint_every=1)
ON_DISK = Plan(net="mlp:2", learner="langevin", epochs=4, draws=2, burn_in=0.5, thinning=1, on_disk=True)


def learned(folder: Path, plan: Plan = PLAN, **settings: Any) -> Any:
    return for_runs.learned(folder, plan, **settings)


def saves_until(last: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The units after which something is saved; after the one that is named, it is interrupted."""
    units: list[int] = []
    save = Checkpointer.save

    def saved(self: Checkpointer, work: Any) -> None:
        save(self, work)
        units.append(work.done)
        if work.done == last:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpointer, "save", saved)
    return units


def test_a_mend_that_is_interrupted_goes_on_where_it_stood(
    run: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(run / "belief.doxa", *(run / "training").glob("checkpoint*.doxa"))
    for last in (3, 6):
        with monkeypatch.context() as patched:
            units = saves_until(last, patched)
            with pytest.raises(KeyboardInterrupt):
                learned(run, resume=True)
        assert units == list(range(last - 2, last + 1))
    said: list[str] = []
    with monkeypatch.context() as patched:
        units = saves_until(0, patched)
        learned(run, resume=True, say=said.append)
    assert units[0] == 7
    assert not any("removed" in words for words in said)
    assert bits(run) == bits(whole)
    assert check_run(run).state == "sealed"


@pytest.mark.parametrize("name", ["checkpoint.doxa", "checkpoint-previous.doxa"])
def test_only_the_checkpoint_that_is_bad_is_removed(
    name: str, run: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(run / "belief.doxa", run / "training" / name)
    (run / "training" / "belief.doxa").write_bytes(b"of a mend that failed")
    said: list[str] = []
    units = saves_until(0, monkeypatch)
    learned(run, resume=True, say=said.append)
    assert [words for words in said if "removed" in words] == [
        f"{run / 'training' / name} is damaged too: it is removed"
    ]
    assert all(unit == EPOCHS for unit in units), "nothing before the last epoch is trained again"
    assert bits(run) == bits(whole)


def test_samples_that_are_damaged_are_drawn_anew(tmp_path: Path) -> None:
    run = learned(tmp_path / "r", ON_DISK).folder
    before = bits(run)
    flip(run / "belief.doxa", *(run / "training").glob("*.rows"))
    said: list[str] = []
    learned(run, ON_DISK, resume=True, say=said.append)
    assert any("samples-0.rows is damaged too" in words and words.endswith("trained anew") for words in said)
    assert bits(run) == before
    assert check_run(run).state == "sealed"


def test_a_checkpoint_that_may_not_be_read_or_is_newer_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flip(run / "belief.doxa")
    before = {path: path.read_bytes() for path in (run / "training").iterdir()}
    monkeypatch.setattr("doxa.storage.sealed.VERSION", 0)
    with pytest.raises(BrokenFile, match="upgrade Doxa"):
        learned(run, resume=True)
    assert {path: path.read_bytes() for path in (run / "training").iterdir()} == before
