"""Checkpoints that are good: the last two are kept, what has diverged is not saved, and only one writes."""

from __future__ import annotations

import math
import os
import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import BadInput, BrokenFile, Diverged, Interrupted, learners, likelihoods, priors, search
from doxa.engine.checkpoint import CHECKPOINT, PREVIOUS
from doxa.errors import NewerFile
from doxa.storage import sealed
from doxa.terminal.interrupt import gentle_interrupt
from for_locks import hold_lock

LEARNERS: dict[str, Any] = {
    "variational": learners.variational(priors.gaussian(1.0)),
    "ensemble": learners.ensemble(learners.point(), 2),
    "langevin": learners.langevin(priors.gaussian(1.0), thinning=3),
    "langevin on disk": learners.langevin(priors.gaussian(1.0), thinning=1, on_disk=True),
    "swa": learners.swa(start_at=0.2),
    "search": search.learner(search.weight_space(), size=6),
}
KEYS: dict[str, Any] = {"likelihood": likelihoods.categorical(), "batch_size": 8, "lr": 0.01, "progress": False}


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 2)


def rows() -> tuple[Tensor, Tensor]:
    x = torch.randn(24, 4, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] > 0).long()


def fit(folder: Path | None = None, name: str = "variational", **keys: Any) -> doxa.Belief:
    options = {**KEYS, "epochs": 4, **keys}
    return doxa.fit(net(), rows(), learner=LEARNERS[name], checkpoint=folder, **options)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def interrupt_after(epochs: int) -> Callable[[doxa.Belief], dict[str, float]]:
    """A watch at whose so-manieth look somebody asks to stop."""
    looks = []

    def watch(belief: doxa.Belief) -> dict[str, float]:
        looks.append(belief)
        if len(looks) == epochs:
            signal.raise_signal(signal.SIGINT)
        return {}

    return watch


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    name: str, damage: Callable[[Path], None], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    fit(
        tmp_path / "whole", name, watch=lambda belief: {}
    )  # samples that are looked at go to the disk before their time
    with pytest.raises(Interrupted):
        fit(tmp_path / "hurt", name, watch=interrupt_after(3))
    damage(tmp_path / "hurt" / CHECKPOINT)
    recwarn.clear()
    epochs: list[None] = []
    fit(tmp_path / "hurt", name, watch=lambda belief: epochs.append(None) or {}, resume=True)
    assert len(epochs) == 2, "it goes on after the second epoch"
    told = [str(w.message) for w in recwarn if "the checkpoint before it" in str(w.message)]
    assert len(told) == (damage is not Path.unlink), "a missing one is as if it had never been written"
    for file in ("belief.doxa", CHECKPOINT):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "hurt" / file).read_bytes()


def test_a_damaged_checkpoint_is_not_kept_in_the_place_of_a_good_one(tmp_path: Path) -> None:
    fit(tmp_path)
    good = (tmp_path / PREVIOUS).read_bytes()
    flip(tmp_path / CHECKPOINT)
    with pytest.warns(UserWarning, match="the checkpoint before it"), pytest.raises(Interrupted):
        fit(tmp_path, epochs=6, watch=interrupt_after(1), resume=True)
    assert (tmp_path / PREVIOUS).read_bytes() == good
    sealed.read(tmp_path / CHECKPOINT, "doxa.training")


def test_a_checkpoint_of_a_newer_doxa_is_neither_passed_over_nor_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(tmp_path)
    with monkeypatch.context() as newer:
        newer.setattr(sealed, "VERSION", sealed.VERSION + 1)
        fit(tmp_path, epochs=5, resume=True)
    before = (tmp_path / CHECKPOINT).read_bytes()
    with pytest.raises(NewerFile, match="upgrade Doxa"):
        fit(tmp_path, epochs=6, resume=True)
    assert (tmp_path / CHECKPOINT).read_bytes() == before


def test_settings_are_refused_by_the_newest_checkpoint_alone(tmp_path: Path) -> None:
    fit(tmp_path)
    with pytest.raises(BadInput, match="batch_size: 8 there, 4 here"):
        fit(tmp_path, batch_size=4, resume=True)


@pytest.mark.parametrize("missing", ["settings", "versions", "layout", "done"])
def test_a_checkpoint_that_lacks_a_field_is_broken(missing: str, tmp_path: Path) -> None:
    fit(tmp_path, epochs=1)
    header, tensors = sealed.read(tmp_path / CHECKPOINT, "doxa.training")
    header = {k: v for k, v in header.items() if k not in ("format", "version", missing)}
    sealed.write(tmp_path / CHECKPOINT, "doxa.training", header, tensors)
    with pytest.raises(BrokenFile, match=missing):
        fit(tmp_path, resume=True)


HOSTILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a number of steps": lambda header: header.update(done="9"),
    "not a number of steps": lambda header: header.update(done=-3),
    "one entry for each": lambda header: header["numbers"]["monitor"].update(histories={}),
    "must hold numbers": lambda header: header["numbers"]["monitor"]["histories"][0][0].update(nll="low"),
    "there are 1 epochs": lambda header: header["numbers"]["monitor"].update(best_epochs=[7]),
}


@pytest.mark.parametrize("message", HOSTILE)
def test_a_checkpoint_of_another_structure_is_broken(message: str, tmp_path: Path) -> None:
    fit(tmp_path, epochs=1)
    header, tensors = sealed.read(tmp_path / CHECKPOINT, "doxa.training")
    HOSTILE[message](header)
    header = {k: v for k, v in header.items() if k not in ("format", "version")}
    sealed.write(tmp_path / CHECKPOINT, "doxa.training", header, tensors)
    with pytest.raises(BrokenFile, match=message):
        fit(tmp_path, resume=True)


TENSORS: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "of another shape": ("training.rho", lambda t: t.flatten()),
    "of another kind": ("training.rho", lambda t: t.double()),
    "not a number": ("training.rho", lambda t: t * math.nan),
    "infinite": ("training.mean", lambda t: t / 0),
    "a moment": ("optimiser.0.mean", lambda t: t * math.nan),
    "of the best epoch": ("collector.best.rho", lambda t: t[:0]),
}


@pytest.mark.parametrize("what", TENSORS)
def test_a_checkpoint_with_tensors_that_mean_harm_is_broken(what: str, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"validation": rows(), "patience": 3}
    fit(tmp_path, epochs=1, **keys)
    header, tensors = sealed.read(tmp_path / CHECKPOINT, "doxa.training")
    name, harm = TENSORS[what]
    tensors[name] = harm(tensors[name])
    header = {k: v for k, v in header.items() if k not in ("format", "version")}
    sealed.write(tmp_path / CHECKPOINT, "doxa.training", header, tensors)
    with pytest.raises(BrokenFile, match=r"was written for another net|holds what has diverged"):
        fit(tmp_path, resume=True, **keys)
    del tensors[name]
    sealed.write(tmp_path / CHECKPOINT, "doxa.training", header, tensors)
    with pytest.raises(BrokenFile, match="the checkpoint has no"):
        fit(tmp_path, resume=True, **keys)


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("mean", lambda t: t.repeat(2)),
        ("mean", lambda t: t * math.nan),
        ("coordinate", lambda t: t / 0),
        ("best", lambda t: t[:0]),
        ("path", lambda t: t[:0]),
        ("path", lambda t: t * math.nan),
        ("optimiser.0.exp_avg", lambda t: t[None]),
    ],
)
def test_a_checkpoint_of_a_search_that_means_harm_is_broken(
    name: str, harm: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"checkpoint": tmp_path, "progress": False, "optimiser": torch.optim.Adam}
    run = partial(search.minimise, search.functions.sphere, [1.0, 2.0], **options)
    run(generations=1)
    header, tensors = sealed.read(tmp_path / CHECKPOINT, "doxa.search")
    tensors[name] = harm(tensors[name])
    header = {k: v for k, v in header.items() if k not in ("format", "version")}
    sealed.write(tmp_path / CHECKPOINT, "doxa.search", header, tensors)
    with pytest.raises(BrokenFile, match=name.partition(".")[0]):
        run(generations=3, resume=True)


class Runaway(torch.optim.SGD):
    """Plain SGD, until it is told to put a number into all weights, or into what it remembers."""

    weights: float | None = None
    moments: float | None = None

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if self.weights is not None:
                    p.data.fill_(self.weights)
                if self.moments is not None:
                    self.state[p]["momentum_buffer"].fill_(self.moments)


class Linear(nn.Module):
    """Outputs that no weight can make infinite, so that only the weights themselves show what they have become."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.linear(x)).nan_to_num()


@pytest.mark.parametrize(("what", "value"), [("weights", 1e30), ("weights", math.nan), ("moments", math.nan)])
def test_what_has_diverged_is_not_saved(
    what: str, value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of before stays, so that what it says of itself, the last good checkpoint, is so."""
    run = partial(
        doxa.fit,
        Linear(),
        rows(),
        learner=learners.point(),
        optimiser=partial(Runaway, momentum=0.9),
        checkpoint=tmp_path,
        checkpoint_steps=1,
        **KEYS,
    )
    run(epochs=1)
    before = (tmp_path / CHECKPOINT).read_bytes()
    monkeypatch.setattr(Runaway, what, value)
    with pytest.raises(Diverged, match=r"The last good checkpoint is in"):
        run(epochs=3, resume=True)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    monkeypatch.setattr(Runaway, what, None)
    assert math.isfinite(run(epochs=2, resume=True).record.history[-1]["nll"])


def test_an_interruption_says_that_what_has_diverged_was_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runaway, "weights", 1e30)

    class Interrupting(Linear):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            Interrupting.calls += 1
            if Interrupting.calls == 4:
                signal.raise_signal(signal.SIGINT)
            return super().forward(x)

    with pytest.raises(Interrupted, match=r"not saved, for it has diverged: the weights ran away: they reach 1e\+30"):
        doxa.fit(
            Interrupting(),
            rows(),
            learner=learners.point(),
            optimiser=partial(Runaway, momentum=0.9),
            checkpoint=tmp_path,
            epochs=3,
            **KEYS,
        )
    assert not (tmp_path / CHECKPOINT).exists()


def test_an_interruption_with_a_full_disk_hands_over_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise BrokenFile(f"could not write {tmp_path}: No space left on device")

    fit(tmp_path, epochs=1)
    monkeypatch.setattr(sealed, "write", full)
    with pytest.raises(
        Interrupted, match=r"not saved, could not write .*No space left.*holds what was saved"
    ) as stopped:
        fit(tmp_path, watch=interrupt_after(1), checkpoint_every=5, resume=True)
    assert stopped.value.belief is not None


def test_a_member_that_has_diverged_does_not_keep_the_others_from_being_saved(tmp_path: Path) -> None:
    runs = partial(
        doxa.fleet, net(), rows(), learners=learners.point(), seeds=[0, 1], checkpoint=tmp_path, **{**KEYS, "lr": None}
    )
    with pytest.raises(Diverged):
        runs(lr=[0.01, 1e30], epochs=3, optimiser=doxa.optimisers.sgd())
    header, _ = sealed.read(tmp_path / CHECKPOINT, "doxa.training")
    assert header["done"] == 9


# Signals.


def stopped_by(number: int) -> int | None:
    """The signal that a training of three epochs says it was stopped by, sent after the first; None if it was not."""
    epochs = []

    def watch(belief: doxa.Belief) -> dict[str, float]:
        epochs.append(belief)
        if len(epochs) == 1:
            os.kill(os.getpid(), number)
        return {}

    try:
        fit(watch=watch, epochs=3)
    except Interrupted as error:
        return error.signal if len(epochs) == 1 and error.belief is not None else -1
    return None if len(epochs) == 3 else -1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_end_are_requests(number: int) -> None:
    before = signal.getsignal(number)
    assert stopped_by(number) == number
    assert signal.getsignal(number) is before


def test_who_is_to_outlive_the_terminal_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under nohup, and under torchrun, whose agent ends its workers by SIGTERM."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert stopped_by(signal.SIGHUP) is None
    finally:
        signal.signal(signal.SIGHUP, before)
    heard: list[int] = []
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        assert stopped_by(signal.SIGTERM) is None
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_the_second_signal_ends_at_once() -> None:
    with gentle_interrupt() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143


# One writer.


def test_two_processes_do_not_train_into_one_folder(tmp_path: Path) -> None:
    process = hold_lock(tmp_path)
    with process:
        for work in (
            lambda: fit(tmp_path),
            lambda: search.minimise(search.functions.sphere, [1.0], checkpoint=tmp_path, generations=2),
        ):
            with pytest.raises(BadInput, match=rf"is being written by process {process.pid} on .* since \d{{4}}-"):
                work()
        process.kill()
    (tmp_path / ".doxa-0123456789abcdef").write_text("what it was writing")
    (tmp_path / ".mine").write_text("not Doxa's")
    fit(tmp_path, epochs=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".mine", "belief.doxa", CHECKPOINT]


@pytest.mark.parametrize("name", ["variational", "langevin", "langevin on disk", "swa"])
def test_a_net_whose_own_buffers_are_nan_is_saved(name: str, tmp_path: Path) -> None:
    class Unset(Linear):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("unset", torch.full((2,), math.nan))
            self.register_buffer("eighths", torch.ones(2).to(torch.float8_e4m3fn))

    def run(folder: Path, **keys: Any) -> doxa.Belief:
        return doxa.fit(Unset(), rows(), learner=LEARNERS[name], epochs=4, checkpoint=folder, **{**KEYS, **keys})

    with pytest.raises(Interrupted):
        run(tmp_path / "cut", watch=interrupt_after(2))
    assert (tmp_path / "cut" / PREVIOUS).exists()
    run(tmp_path / "cut", resume=True)
    run(tmp_path / "whole")
    assert (tmp_path / "cut/belief.doxa").read_bytes() == (tmp_path / "whole/belief.doxa").read_bytes()


def test_what_is_not_saved_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runaway, "weights", 1e30)
    keys: dict[str, Any] = {"learner": learners.point(), "optimiser": partial(Runaway, momentum=0.9), "epochs": 3}
    with pytest.warns(UserWarning, match="not saved") as told, pytest.raises(Diverged):
        doxa.fit(Linear(), rows(), checkpoint=tmp_path, checkpoint_steps=1, **keys, **KEYS)
    (text,) = [str(w.message) for w in told if "not saved" in str(w.message)]
    assert re.match("not saved at step 1 .* ran away.*nothing was saved yet", text)
