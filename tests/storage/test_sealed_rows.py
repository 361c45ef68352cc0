"""Rows that stay in a belief's file: a segment that changed after the file was opened is refused as it is read."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from doxa import BadInput, Belief, BrokenFile, load, posteriors
from doxa.predict.belief import BELIEF
from doxa.storage import rows, sealed_rows
from doxa.storage.reading import file_sha256
from doxa.storage.sample_store import SampleStore
from doxa.storage.sealed import read, write
from doxa.storage.sealed_rows import SealedRows
from for_storage import X, belief, forge, net

COUNT, COLUMNS, PER_SEGMENT = 10, 22, 3
SLOTS = (("1.running_mean", (2,)), ("1.running_var", (2,)))
ROWS = 1 + torch.rand(COUNT, COLUMNS, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three rows."""
    monkeypatch.setattr(rows, "SEGMENT", PER_SEGMENT * COLUMNS * 4 + 1)


def stored(folder: Path) -> SampleStore:
    store = SampleStore.create(folder / "chain.rows", COLUMNS)
    store.append(ROWS)
    return store


def chain(rows: Any) -> Belief:
    return belief(lambda layout, start: posteriors.samples(rows, layout.random, SLOTS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    chain(stored(tmp_path)).save(tmp_path / "a.doxa")
    return tmp_path / "a.doxa"


def change_unnoticed(path: Path, offset: int, mask: int = 1) -> None:
    """Turn bits of a byte as a failing disk does: nothing else tells of it."""
    before = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ mask]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def rows_of(path: Path) -> SealedRows:
    found = read(path, BELIEF)[1]["posterior.rows"]
    assert isinstance(found, SealedRows)
    return found


def test_rows_are_those_that_were_written_however_they_are_read(path: Path) -> None:
    header, _ = read(path, BELIEF)
    assert header["streams"]["posterior.rows"]["rows"] == PER_SEGMENT
    assert len(header["streams"]["posterior.rows"]["sha256"]) == 4
    again = rows_of(path)
    for start in range(COUNT + 1):
        for stop in range(start, COUNT + 1):
            assert torch.equal(rows_of(path).read(start, stop), ROWS[start:stop])
            assert torch.equal(again.read(start, stop), ROWS[start:stop])
    assert again.verified == {0, 1, 2, 3}


@pytest.mark.parametrize("row", [0, 4, 9])
def test_a_flip_long_after_loading_is_refused_and_not_predicted_with(row: int, path: Path) -> None:
    loaded = load(path, net())
    expected = loaded.predict(X, 100).outputs
    late = load(path, net())
    source = late.posterior.rows
    change_unnoticed(path, source.start + row * COLUMNS * 4 + 5)
    with pytest.raises(BrokenFile, match=r"is damaged: rows . to . of its samples do not match their SHA-256"):
        late.predict(X, 100)
    others = [k for k in range(COUNT) if k // PER_SEGMENT != row // PER_SEGMENT]
    assert all(torch.equal(source.read(k, k + 1), ROWS[k : k + 1]) for k in others), "what is whole can be read"
    with pytest.raises(BrokenFile, match="is damaged"):
        load(path, net())
    change_unnoticed(path, source.start + row * COLUMNS * 4 + 5)
    assert torch.equal(late.predict(X, 100).outputs, expected)


def test_no_flipped_bit_of_a_row_is_read(path: Path) -> None:
    source = rows_of(path)
    for offset in range(COUNT * COLUMNS * 4):
        row = offset // (COLUMNS * 4)
        change_unnoticed(path, source.start + offset, 1 << offset % 8)
        source.verified.clear()
        with pytest.raises(BrokenFile):
            source.read(row, row + 1)
        change_unnoticed(path, source.start + offset, 1 << offset % 8)
    assert torch.equal(source.read(0, COUNT), ROWS)


def test_a_segment_is_hashed_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, hashed = load(path, net()), []
    sha256 = sealed_rows.hashlib.sha256
    monkeypatch.setattr(
        sealed_rows, "hashlib", SimpleNamespace(sha256=lambda data: (hashed.append(len(data)), sha256(data))[1])
    )
    loaded.posterior.rows.read(4, 5)
    assert hashed == [PER_SEGMENT * COLUMNS * 4]
    first = loaded.predict(X, 100).outputs
    assert len(hashed) == 4
    assert torch.equal(loaded.predict(X, 100).outputs, first)
    assert len(hashed) == 4


def test_a_file_of_an_older_doxa_is_read_without_seals(path: Path) -> None:
    header, tensors = read(path, BELIEF)
    held = {name: t if isinstance(t, Tensor) else t.read(0, COUNT) for name, t in tensors.items()}
    forge(path, {**header, "streams": ["posterior.rows"]}, held)
    old = rows_of(path)
    assert old.seals is None
    assert torch.equal(old.read(2, 7), ROWS[2:7])
    assert torch.equal(load(path, net()).predict(X).outputs, chain(ROWS).predict(X).outputs)


@pytest.mark.parametrize(
    "seals",
    [
        {},
        {"rows": 3},
        {"rows": 0, "sha256": []},
        {"rows": -3, "sha256": []},
        {"rows": True, "sha256": ["0" * 64] * COUNT},
        {"rows": 3.0, "sha256": ["0" * 64] * 4},
        {"rows": 3, "sha256": ["0" * 64] * 3},
        {"rows": 3, "sha256": ["0" * 64] * 5},
        {"rows": 3, "sha256": [0] * 4},
        {"rows": 3, "sha256": "0000"},
        {"rows": 10**30, "sha256": [None]},
        [3],
        "all",
    ],
)
def test_seals_that_cannot_be_are_refused(seals: object, path: Path) -> None:
    header, tensors = read(path, BELIEF)
    held = {name: t if isinstance(t, Tensor) else t.read(0, COUNT) for name, t in tensors.items()}
    forge(path, {**header, "streams": {"posterior.rows": seals}}, held)
    with pytest.raises(BrokenFile, match=r"streams\.posterior\.rows"):
        read(path, BELIEF)


def test_rows_go_from_file_to_file_with_their_seals(path: Path) -> None:
    first = load(path, net())
    first.save(path.with_name("b.doxa"))
    assert path.read_bytes() == path.with_name("b.doxa").read_bytes()
    late = load(path, net())
    change_unnoticed(path, late.posterior.rows.start)
    with pytest.raises(BrokenFile, match="rows 0 to 2"):
        late.save(path.with_name("c.doxa"))
    assert not path.with_name("c.doxa").exists()


def test_a_known_digest_covers_rows_too(path: Path) -> None:
    digest, source = file_sha256(path), rows_of(path)
    assert torch.equal(load(path, net(), sha256=digest).predict(X).outputs, chain(ROWS).predict(X).outputs)
    change_unnoticed(path, source.start + 7)
    with pytest.raises(BrokenFile, match="SHA-256"):
        load(path, net(), sha256=digest)


def test_rows_of_any_precision_and_of_large_size_are_sealed(tmp_path: Path) -> None:
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        store = SampleStore.create(tmp_path / str(dtype), 200, dtype)  # a row is more than a segment
        store.append(torch.randn(3, 200).to(dtype))
        write(tmp_path / "a", "rows", {}, {"r": store})
        header, tensors = read(tmp_path / "a", "rows")
        assert header["streams"]["r"]["rows"] == 1
        assert torch.equal(tensors["r"].read(0, 3), store.read(0, 3))


def test_rows_are_read_twice_to_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    belief_of_store, rows_read = chain(stored(tmp_path)), []
    store_read = SampleStore.read
    monkeypatch.setattr(
        SampleStore,
        "read",
        lambda store, start, stop: (rows_read.append(stop - start), store_read(store, start, stop))[1],
    )
    belief_of_store.save(tmp_path / "a.doxa")
    assert sum(rows_read) == 2 * COUNT


def test_rows_lie_in_a_file_as_tensors_do(tmp_path: Path) -> None:
    beside = {"a": torch.arange(3), "z": torch.ones(5, dtype=torch.uint8), "n": torch.zeros(0), "b": torch.ones(2, 3)}
    write(tmp_path / "rows", "rows", {}, {**beside, "r": stored(tmp_path)})
    write(tmp_path / "held", "rows", {}, {**beside, "r": ROWS})
    whole = load_file(tmp_path / "held")
    assert all(torch.equal(t, whole[name]) for name, t in load_file(tmp_path / "rows").items())
    for path in (tmp_path / "rows", tmp_path / "held"):
        tensors = read(path, "rows")[1]
        assert tensors.keys() == whole.keys()
        assert torch.equal(tensors["r"] if path.name == "held" else tensors["r"].read(0, COUNT), ROWS)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_samples_that_are_not_finite_are_neither_saved_nor_loaded(number: float, path: Path) -> None:
    header, tensors = read(path, BELIEF)
    held = {name: t if isinstance(t, Tensor) else t.read(0, COUNT) for name, t in tensors.items()}
    held["posterior.rows"][5, 3] = number
    store = SampleStore.create(path.with_name("other.rows"), COLUMNS)
    store.append(held["posterior.rows"])
    with pytest.raises(BadInput, match="samples 3 to 5 hold NaN or infinity"):
        chain(store).save(path.with_name("b.doxa"))
    forge(path, header, held)
    for digest in (None, file_sha256(path)):
        with pytest.raises(BrokenFile, match="weights that are NaN or infinity"):
            load(path, net(), sha256=digest)


def test_large_finite_numbers_are_finite() -> None:
    assert rows.are_finite(torch.full((9,), 3e38))
    assert rows.are_finite(torch.zeros(0))
    for number in (float("nan"), float("inf"), float("-inf")):
        assert not rows.are_finite(torch.tensor([3e38, number, 3e38]))
    assert not rows.are_finite(torch.tensor([float("inf"), float("-inf")]))
