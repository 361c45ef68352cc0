"""Nets with infinity in a buffer, such as a causal mask: what was learned is saved, loaded and gone on with."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import BadInput, BrokenFile, learners, likelihoods, load, posteriors, priors
from doxa.engine.checkpoint import CHECKPOINT
from doxa.predict.belief import BELIEF
from doxa.storage.reading import file_sha256
from doxa.storage.sample_store import SampleStore
from doxa.storage.sealed import read
from for_storage import belief, forge
from for_storage import net as normalised

X = torch.randn(16, 3, generator=torch.Generator().manual_seed(1))
SLOTS = (("1.running_mean", (2,)), ("1.running_var", (2,)))
WEIGHTS, COLUMNS = 18, 22


class Masked(nn.Module):
    """Three numbers, each of which attends to those before it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 1)
        self.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        attention = (h[:, :, None] * h[:, None, :] + self.mask).softmax(-1)
        return self.last((attention @ h[:, :, None])[:, :, 0])


def langevin(on_disk: bool = False) -> Any:
    return learners.langevin(priors.gaussian(1.0), burn_in=0.0, thinning=1, on_disk=on_disk)


LEARNERS = {
    "langevin": langevin,
    "langevin on disk": lambda: langevin(on_disk=True),
    "particles": lambda: learners.ensemble(learners.point(priors.gaussian(1.0)), 2),
    "mixture": lambda: learners.ensemble(learners.variational(priors.gaussian(1.0)), 2),
    "mixture of chains": lambda: learners.ensemble(langevin(on_disk=True), 2),
    "swa": lambda: learners.swa(learners.point(priors.gaussian(1.0))),
}


class Enough(Exception):
    """What breaks a run off."""


def fit(folder: Path, learner: Any, last_epoch: int | None = None, **more: Any) -> doxa.Belief:
    seen = [0]

    def watch(_: doxa.Belief) -> dict[str, float]:
        seen[0] += 1
        if seen[0] == last_epoch:
            raise Enough
        return {}

    return doxa.fit(
        Masked(),
        (X, X[:, :1]),
        learner=learner,
        likelihood=likelihoods.gaussian(1.0),
        epochs=4,
        batch_size=8,
        lr=0.01,
        seed=3,
        progress=False,
        checkpoint=folder,
        checkpoint_every=1,
        watch=watch,
        **more,
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_learned_is_saved_loaded_and_resumed(name: str, tmp_path: Path) -> None:
    whole = fit(tmp_path / "a", LEARNERS[name]())
    assert whole.predict(X, 20).outputs.isfinite().all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load(tmp_path / "a" / "belief.doxa", Masked())
    assert torch.equal(loaded.predict(X, 20).outputs, whole.predict(X, 20).outputs)
    loaded.save(tmp_path / "again.doxa")
    assert (tmp_path / "again.doxa").read_bytes() == (tmp_path / "a" / "belief.doxa").read_bytes()
    with pytest.raises(Enough):
        fit(tmp_path / "b", LEARNERS[name](), 3)
    assert (tmp_path / "b" / CHECKPOINT).exists()
    resumed = fit(tmp_path / "b", LEARNERS[name](), resume=True)
    assert torch.equal(resumed.predict(X, 20).outputs, whole.predict(X, 20).outputs)


def test_a_file_of_an_older_doxa_is_loaded(tmp_path: Path) -> None:
    whole, path = fit(tmp_path / "a", langevin(on_disk=True)), tmp_path / "old.doxa"
    header, tensors = read(tmp_path / "a" / "belief.doxa", BELIEF)
    held = {k: t if isinstance(t, Tensor) else t.read(0, len(t)) for k, t in tensors.items()}
    forge(path, {**header, "streams": ["posterior.rows"]}, held)
    for digest in (None, file_sha256(path)):
        assert torch.equal(load(path, Masked(), sha256=digest).predict(X).outputs, whole.predict(X).outputs)


def chain(folder: Path, on_disk: bool, column: int, number: float) -> doxa.Belief:
    """Three samples, the second of which has a number in a column."""
    rows = torch.ones(3, COLUMNS)
    rows[1, column] = number
    if not on_disk:
        return belief(lambda layout, start: posteriors.samples(rows, layout.random, SLOTS))
    store = SampleStore.create(folder / "chain.rows", COLUMNS)
    store.append(rows)
    return belief(lambda layout, start: posteriors.samples(store, layout.random, SLOTS))


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_are_finite_whatever_buffers_are(on_disk: bool, number: float, tmp_path: Path) -> None:
    path = tmp_path / "a.doxa"
    with pytest.raises(BadInput, match="NaN or infinity"):
        chain(tmp_path / "1", on_disk, WEIGHTS - 1, number).save(path)
    assert not path.exists()
    chain(tmp_path / "2", on_disk, WEIGHTS, float("-inf")).save(path)
    header, tensors = read(path, BELIEF)
    held = {k: t if isinstance(t, Tensor) else t.read(0, 3) for k, t in tensors.items()}
    held["posterior.rows"][2, 0] = number
    old = {**header, **({"streams": ["posterior.rows"]} if on_disk else {})}
    for digest in (None, file_sha256(forge(path, old, held))):
        with pytest.raises(BrokenFile, match="NaN or infinity"):
            load(path, normalised(), sha256=digest)


@pytest.mark.parametrize("on_disk", [False, True])
def test_nan_in_the_buffers_of_samples_is_told_of(on_disk: bool, tmp_path: Path) -> None:
    path, own = tmp_path / "a.doxa", normalised()
    chain(tmp_path, on_disk, WEIGHTS + 3, float("nan")).save(path)
    with pytest.warns(UserWarning, match=r": 1\.running_var hold NaN"):
        load(path, own)
    own[1].running_var[0] = float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path, own)
