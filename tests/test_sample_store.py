"""A store of rows: what was appended is what is read, and what is damaged is refused."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import struct
import zlib
from pathlib import Path
from typing import IO

import pytest
import torch
from torch import Tensor

from doxa.errors import BadInput, BrokenFile
from doxa.storage import sample_store
from doxa.storage.sample_store import SampleStore
from doxa.storage.store_format import CHECKSUM, SEAL, START
from for_storage import overwrite


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
        overwrite(store.path, content)
        content[i] ^= bit
        try:
            rows_read = SampleStore.open(store.path).read(0, 7)
        except BrokenFile:
            refused += 1
            continue
        assert torch.equal(rows_read, original), f"byte {i}"
    assert refused == len(content)


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
    for path in (tmp_path / "none", tmp_path, tmp_path / "a" / "below"):
        with pytest.raises(BrokenFile, match="is not a file; expected a store of rows"):
            SampleStore.open(path)


def test_a_store_from_the_future_is_refused(store: SampleStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doxa.storage.store_format.VERSION", 1)
    with pytest.raises(BrokenFile, match="store version 2; this Doxa reads up to 1: upgrade"):
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


# Segments, and what a killed or failed append leaves.

PER_SEGMENT = 3


@pytest.fixture
def segmented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleStore:
    """Seven rows in segments of three: two that are full, and one row."""
    monkeypatch.setattr("doxa.storage.rows.SEGMENT", PER_SEGMENT * 5 * 4 + 1)
    filled = SampleStore.create(tmp_path / "chain.rows", 5)
    filled.append(rows(7))
    return filled


def reread(store: SampleStore) -> SampleStore:
    return SampleStore.open(store.path)


@pytest.mark.parametrize("parts", [[7], [1] * 7, [2, 2, 3], [3, 3, 1], [6, 1], [5, 2], [0, 4, 0, 3]])
def test_segments_are_the_same_however_they_were_filled(parts: list[int], segmented: SampleStore) -> None:
    expected = segmented.path.read_bytes()
    assert len(expected) == START + 7 * (5 * 4 + CHECKSUM.size) + 2 * SEAL
    segmented.truncate(0)
    assert segmented.path.stat().st_size == START
    for part in rows(7).split(parts):
        segmented.append(part)
    assert segmented.path.read_bytes() == expected
    for start in range(8):
        for stop in range(start, 8):
            assert torch.equal(reread(segmented).read(start, stop), rows(7)[start:stop])
    for count in range(7, -1, -1):
        segmented.truncate(count)
        assert (len(segmented), segmented.torn) == (count, False)
        assert torch.equal(segmented.read(0, count), rows(7)[:count])


def test_a_segment_is_hashed_once(segmented: SampleStore) -> None:
    store = reread(segmented)
    store.read(4, 5)
    assert store.verified == {1}
    snapshot = store.snapshot()
    snapshot.read(0, 7)
    assert store.verified == {0, 1}, "the last is not full"
    store.append(rows(4, seed=1))
    assert torch.equal(snapshot.read(0, 7), rows(7))
    store.read(0, 11)
    assert store.verified == {0, 1, 2}
    store.truncate(5)
    assert store.verified == {0}


def test_rows_that_were_changed_with_their_checksums_are_refused(segmented: SampleStore) -> None:
    """What a CRC-32 of each row does not see: here the hand that wrote them knows it."""
    content, size = bytearray(segmented.path.read_bytes()), 5 * 4 + CHECKSUM.size
    other = rows(1, seed=9).view(torch.uint8).numpy()[0].data
    start = segmented.format.start_of(4)
    content[start : start + size] = bytes(other) + segmented.format.checksum(4, other)
    segmented.path.write_bytes(content)
    with pytest.raises(BrokenFile, match=r"rows 3 to 5 of .* are damaged: they do not match their SHA-256"):
        reread(segmented).read(5, 6)
    with pytest.raises(BrokenFile, match="rows 3 to 5"):
        reread(segmented).truncate(6)
    assert torch.equal(reread(segmented).read(0, 3), rows(7)[:3])


def test_the_chain_of_seals_refuses_a_segment_of_another_history(segmented: SampleStore, tmp_path: Path) -> None:
    """Two stores of one identity: whole, and the same but for their first rows."""
    first = segmented.path.read_bytes()
    segmented.truncate(0)
    segmented.append(torch.cat([rows(3, seed=5), rows(7)[3:]]))
    span = slice(segmented.format.start_of(3), segmented.format.start_of(6))
    mixed = bytearray(first)
    mixed[span] = segmented.path.read_bytes()[span]
    segmented.path.write_bytes(mixed)
    with pytest.raises(BrokenFile, match="rows 3 to 5"):
        reread(segmented).read(3, 6)


def test_a_store_cut_anywhere_is_refused_or_goes_on_to_the_same_end(
    segmented: SampleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law of a resume: a checkpoint knows how many rows there were, and the rest comes again."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    segmented.truncate(5)
    segmented.append(rows(6, seed=1))
    whole = segmented.path.read_bytes()
    refused = 0
    for kept in (5, 6):
        rest = torch.cat([rows(7)[:5], rows(6, seed=1)])[kept:]
        for length in range(len(whole)):
            overwrite(segmented.path, whole[:length])
            try:
                store = reread(segmented)
                store.truncate(kept)
            except BrokenFile:
                refused += 1
                assert length < segmented.format.start_of(kept), "all that is to be kept is there"
                continue
            store.append(rest)
            assert segmented.path.read_bytes() == whole, (kept, length)
    assert refused > len(whole)


def test_a_store_with_any_bit_flipped_is_refused_or_goes_on_to_the_same_end(
    segmented: SampleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    content, choose = bytearray(segmented.path.read_bytes()), random.Random(1)
    recovered = 0
    for i in range(len(content)):
        content[i] ^= (bit := 1 << choose.randrange(8))
        overwrite(segmented.path, content)
        content[i] ^= bit
        for kept in (4, 6):
            try:
                store = reread(segmented)
                store.truncate(kept)
                assert torch.equal(store.read(0, kept), rows(7)[:kept])
                store.append(rows(7)[kept:])
            except BrokenFile:
                segmented.path.write_bytes(content)
                continue
            recovered += 1
            assert segmented.path.read_bytes() == content
    assert recovered > 7 * 4, "what is cut off may be damaged"


def test_a_store_of_version_1_is_read_and_gone_on_with(tmp_path: Path) -> None:
    """As it was written: without segments."""
    identity, values = b"identity", rows(4)
    fields = struct.pack("<8sI4sQ8s", b"doxarows", 1, b"F32", 5, identity)
    content = (fields + struct.pack("<I", zlib.crc32(fields))).ljust(64, b"\0")
    for k, row in enumerate(values.numpy()):
        content += row.tobytes()
        content += struct.pack("<I", zlib.crc32(row.tobytes(), zlib.crc32(identity + k.to_bytes(8, "little"))))
    path = tmp_path / "old.rows"
    path.write_bytes(content)
    store = SampleStore.open(path)
    assert torch.equal(store.read(0, 4), values)
    assert store.read(4, 4).shape == (0, 5)
    store.append(rows(3, seed=2))
    store.truncate(6)
    assert torch.equal(SampleStore.open(path).read(1, 6), torch.cat([values, rows(2 + 1, seed=2)])[1:6])
    store.truncate(4)
    assert path.read_bytes() == content
    path.write_bytes(content[:-1])
    assert (len(store), store.torn) == (3, True)


def test_a_store_that_takes_another_s_place_is_new_or_refused_in_words(
    segmented: SampleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        with pytest.raises(BrokenFile, match=r"could not write .*No space left"):
            SampleStore.create(segmented.path, 3, replace=True)
    assert len(segmented) == 7
    fresh = SampleStore.create(segmented.path, 3, replace=True)
    assert (len(fresh), fresh.columns) == (0, 3)


def test_an_append_that_fails_leaves_what_was_there(segmented: SampleStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full: some bytes are written, then none."""
    whole, write = segmented.path.read_bytes(), sample_store._write_all

    def fill(file: IO[bytes], content: bytes) -> None:
        write(file, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sample_store, "_write_all", fill)
    with pytest.raises(BrokenFile, match=r"could not append to .*No space left on device"):
        segmented.append(rows(9))
    assert segmented.path.read_bytes() == whole
    with pytest.raises(BrokenFile, match=r"could not write .*No space left"):
        SampleStore.create(segmented.path.with_name("b"), 5)
    assert not segmented.path.with_name("b").exists()
    monkeypatch.undo()
    segmented.append(rows(1))
    assert len(segmented) == 8


def test_a_limit_on_the_size_of_files_is_met_in_words(segmented: SampleStore) -> None:
    whole = segmented.path.read_bytes()
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 30, limits[1]))
    try:
        with pytest.raises(BrokenFile, match="could not append"):
            segmented.append(rows(9))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert segmented.path.read_bytes() == whole
