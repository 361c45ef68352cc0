"""The law of a resume, with a store of samples that was damaged: refused in words, or the same belief to the bit."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import doxa
from doxa import BrokenFile, learners, likelihoods, priors
from doxa.collectors import chain
from doxa.engine.checkpoint import PREVIOUS
from doxa.storage import rows

STORE, BELIEF = "samples-0.rows", "belief.doxa"
X = torch.randn(16, 3, generator=torch.Generator().manual_seed(1))


class Enough(Exception):
    """What breaks a run off."""


def run(folder: Path, epochs: int | None = None, **more: Any) -> None:
    """A chain on disk that keeps every step; broken off after so many epochs, which is after its last checkpoint."""
    torch.manual_seed(0)
    net, seen = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), [0]

    def watch(belief: doxa.Belief) -> dict[str, float]:
        seen[0] += 1
        if seen[0] == epochs:
            raise Enough
        return {}

    doxa.fit(
        net,
        (X, X[:, :1]),
        learner=learners.langevin(priors.gaussian(1.0), burn_in=0.0, thinning=1, on_disk=True),
        likelihood=likelihoods.gaussian(1.0),
        epochs=6,
        batch_size=8,
        lr=0.01,
        seed=3,
        progress=False,
        checkpoint=folder,
        checkpoint_every=2,
        watch=watch,
        **more,
    )


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of 12 samples whose checkpoint knows of 8, in segments of three; its store has 10."""
    monkeypatch.setattr(rows, "SEGMENT", 3 * 21 * 4)
    monkeypatch.setattr(chain, "STAGED_NUMBERS", {"cpu": 1})
    run(tmp_path / "whole")
    with pytest.raises(Enough):
        run(tmp_path / "cut", 5)
    return tmp_path / "cut"


def go_on(cut: Path, store: bytes, refused: bool) -> None:
    """Go on with a run that has this store: it is refused, or its belief is that of one never broken off.

    The checkpoint before the last, which needs fewer of the samples, is not there to help.
    """
    folder = cut.with_name("again")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cut, folder)
    (folder / PREVIOUS).unlink()
    (folder / STORE).write_bytes(store)
    if refused:
        with pytest.raises(BrokenFile, match=STORE):
            run(folder, resume=True)
        return
    run(folder, resume=True)
    assert (folder / BELIEF).read_bytes() == (cut.with_name("whole") / BELIEF).read_bytes()


def test_a_store_that_is_damaged_late_serves_the_checkpoint_before(cut: Path) -> None:
    content = bytearray((cut / STORE).read_bytes())
    content[64 + 7 * (21 * 4 + 4) + 2 * 32] ^= 1  # in the last of the samples that the newest checkpoint knows of
    (cut / STORE).write_bytes(content)
    with pytest.warns(UserWarning, match="going on from .*previous"):
        run(cut, resume=True)
    assert (cut / BELIEF).read_bytes() == (cut.with_name("whole") / BELIEF).read_bytes()


def test_a_store_cut_short(cut: Path) -> None:
    content, choose = (cut / STORE).read_bytes(), random.Random(0)
    row, seal = 21 * 4 + 4, 32
    needed = 64 + 8 * row + 2 * seal
    assert len(content) == 64 + 10 * row + 3 * seal
    for length in (0, 63, 64, needed - 1, *(choose.randrange(needed) for _ in range(2))):
        go_on(cut, content[:length], refused=True)
    for length in (
        needed,
        needed + row,
        needed + row + seal,
        *(choose.randrange(needed, len(content)) for _ in range(2)),
    ):
        go_on(cut, content[:length], refused=False)


def test_a_store_with_a_bit_flipped(cut: Path) -> None:
    content, choose = bytearray((cut / STORE).read_bytes()), random.Random(1)
    needed = 64 + 8 * (21 * 4 + 4) + 2 * 32
    for i in (
        *(choose.randrange(needed) for _ in range(4)),
        *(choose.randrange(needed, len(content)) for _ in range(2)),
    ):
        content[i] ^= (bit := 1 << choose.randrange(8))
        go_on(cut, bytes(content), refused=i < needed)
        content[i] ^= bit
