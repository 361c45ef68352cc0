"""A store of rows: what was appended is what is read, and what is damaged is refused."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from doxa.errors import BadInput, BrokenFile
from doxa.storage.sample_store import CHECKSUM, START, SampleStore


def rows(count: int, columns: int = 5, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(count, columns, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.fixture
def store(tmp_path: Path) -> SampleStore:
    filled = SampleStore.create(tmp_path / "chain.rows", 5)
    filled.append(rows(7))
    return filled


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_what_was_appended_is_what_is_read(dtype: torch.dtype, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "chain.rows"
    created = SampleStore.create(path, 3, dtype)
    assert len(created) == 0
    parts = [rows(n, 3, dtype, seed=n) for n in (1, 4, 0, 2)]
    for part in parts:
        created.append(part)
    reopened = SampleStore.open(path)
    assert (len(reopened), reopened.columns, reopened.dtype, reopened.torn) == (7, 3, dtype, False)
    assert torch.equal(reopened.read(0, 7), torch.cat(parts))
    assert torch.equal(reopened.read(2, 6), torch.cat(parts)[2:6])
    assert torch.equal(reopened.read(5, 6), torch.cat(parts)[5:6])
    assert reopened.read(3, 3).shape == (0, 3)
    assert reopened == created


def test_numbers_keep_every_bit(tmp_path: Path) -> None:
    created = SampleStore.create(tmp_path / "a", 4)
    special_values = torch.tensor([[float("nan"), float("inf"), -0.0, 1e-45]])
    created.append(special_values)
    assert torch.equal(created.read(0, 1).view(torch.int32), special_values.view(torch.int32))


def test_what_is_read_is_fresh_memory(store: SampleStore) -> None:
    store.read(0, 7).zero_()
    assert torch.equal(store.read(0, 7), rows(7))


def test_a_store_as_it_stands_does_not_grow(store: SampleStore) -> None:
    snapshot = store.snapshot()
    store.append(rows(2, seed=1))
    assert (len(store), len(snapshot)) == (9, 7)
    with pytest.raises(BadInput, match="rows 7 to 8 were asked for, but there are 7"):
        snapshot.read(7, 8)
    with pytest.raises(BadInput, match="is read as it stood with 7 rows"):
        snapshot.append(rows(1))


def test_truncate_cuts_off_what_came_after_a_checkpoint(store: SampleStore) -> None:
    store.append(rows(3, seed=1))
    store.truncate(7)
    assert torch.equal(store.read(0, 7), rows(7))
    store.append(rows(3, seed=2))
    assert torch.equal(store.read(7, 10), rows(3, seed=2))
    with pytest.raises(BrokenFile, match="holds 10 rows, but 11 are to be kept"):
        store.truncate(11)
    store.truncate(0)
    assert len(store) == 0
    assert store.path.stat().st_size == START


@pytest.mark.parametrize("lost", [1, CHECKSUM.size, CHECKSUM.size + 1, 5 * 4, 5 * 4 + CHECKSUM.size - 1])
def test_a_torn_tail_is_recognised_and_cut_off(store: SampleStore, lost: int) -> None:
    """Killed in the middle of an append: whole rows are there, and a part of one."""
    os.truncate(store.path, store.path.stat().st_size - lost)
    reopened = SampleStore.open(store.path)
    assert (len(reopened), reopened.torn) == (6, True)
    assert torch.equal(reopened.read(0, 6), rows(7)[:6])
    with pytest.raises(BrokenFile, match="ends in the middle of a row; truncate it"):
        reopened.append(rows(1))
    reopened.truncate(5)
    assert (len(reopened), reopened.torn) == (5, False)
    reopened.append(rows(1, seed=3))
    assert torch.equal(reopened.read(0, 6), torch.cat([rows(7)[:5], rows(1, seed=3)]))


def test_space_that_was_never_written_is_no_row(store: SampleStore) -> None:
    """As a file system may leave it when the power fails: of full length, and zero."""
    with open(store.path, "ab") as file:
        file.write(bytes(5 * 4 + CHECKSUM.size))
    assert len(store) == 8
    with pytest.raises(BrokenFile, match=r"row 7 of .* is damaged"):
        store.truncate(8)
    store.truncate(7)
    assert torch.equal(store.read(0, 7), rows(7))


def test_no_flipped_bit_is_read_as_another_row(store: SampleStore) -> None:
    content, choose = bytearray(store.path.read_bytes()), random.Random(0)
    original = rows(7)
    refused = 0
    for i in range(len(content)):
        content[i] ^= (bit := 1 << choose.randrange(8))
        store.path.write_bytes(content)
        content[i] ^= bit
        try:
            rows_read = SampleStore.open(store.path).read(0, 7)
        except BrokenFile:
            refused += 1
            continue
        assert torch.equal(rows_read, original), f"byte {i}"
    assert refused >= len(content) - 28  # the header ends in zeros that mean nothing


def test_rows_that_changed_places_are_refused(store: SampleStore) -> None:
    content, stride = bytearray(store.path.read_bytes()), 5 * 4 + CHECKSUM.size
    first, second = slice(START, START + stride), slice(START + stride, START + 2 * stride)
    content[first], content[second] = content[second], content[first]
    store.path.write_bytes(content)
    with pytest.raises(BrokenFile, match=r"row 0 of .* is damaged"):
        store.read(0, 7)


def test_another_store_in_its_place_is_refused(store: SampleStore) -> None:
    store.path.unlink()
    with pytest.raises(BrokenFile, match="cannot be"):
        store.read(0, 1)
    replacement = SampleStore.create(store.path, 5)
    replacement.append(rows(9, seed=4))
    with pytest.raises(BrokenFile, match="another file is in its place"):
        store.read(0, 1)
    assert torch.equal(SampleStore.open(store.path).read(0, 9), rows(9, seed=4))


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"doxarows", b"\0" * 200, b"\x80\x04\x95" + bytes(100), os.urandom(500)):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(BrokenFile):
            SampleStore.open(tmp_path / "a")
    with pytest.raises(BrokenFile, match="cannot be read"):
        SampleStore.open(tmp_path / "none")
    with pytest.raises(BrokenFile, match="cannot be read"):
        SampleStore.open(tmp_path)


def test_a_store_from_the_future_is_refused(store: SampleStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doxa.storage.sample_store.VERSION", 0)
    with pytest.raises(BrokenFile, match="store version 1; this Doxa reads up to 0: upgrade"):
        SampleStore.open(store.path)


def test_bad_rows_are_refused_with_words(store: SampleStore) -> None:
    for wrong in (rows(2, 4), rows(2).double(), rows(2)[0], rows(2)[None]):
        with pytest.raises(BadInput, match=r"takes torch.float32 of shape \(n, 5\)"):
            store.append(wrong)
    with pytest.raises(BadInput, match="exists already"):
        SampleStore.create(store.path, 5)
    with pytest.raises(BadInput, match="real numbers"):
        SampleStore.create(store.path.with_name("b"), 5, torch.int64)
    with pytest.raises(BadInput, match="columns"):
        SampleStore.create(store.path.with_name("b"), 0)
    for start, stop in ((-1, 2), (0, 8), (3, 2)):
        with pytest.raises(BadInput, match="were asked for, but there are 7"):
            store.read(start, stop)
