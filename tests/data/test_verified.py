"""Files on the disk: verified when they are loaded, once, and again when they have changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from doxa import data
from doxa.data import verified
from doxa.data.verified import verify
from doxa.errors import BrokenFile

CONTENT = b"what it should be"
DIGESTS = frozenset({hashlib.sha256(CONTENT).hexdigest(), hashlib.sha256(b"the same, unpacked").hexdigest()})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A good file that has been there for an hour."""
    path = tmp_path / "a"
    put(path, CONTENT)
    return path


@pytest.fixture
def memory(cache: Path) -> Path:
    return cache.parent / "verified.json"


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills with the names of the files that are hashed."""
    names: list[str] = []
    real = hashlib.file_digest
    monkeypatch.setattr(
        "hashlib.file_digest", lambda file, kind: names.append(Path(file.name).name) or real(file, kind)
    )
    return names


def put(path: Path, content: bytes, hours_ago: float = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    stamp = time.time_ns() - int(hours_ago * 3600e9)
    os.utime(path, ns=(stamp, stamp))


def test_file_is_hashed_once(path: Path, hashed: list[str], memory: Path) -> None:
    for _ in range(3):
        assert verify(path, DIGESTS, "set") == path
    assert hashed == ["a"]
    status = path.stat()
    expected = [status.st_size, status.st_mtime_ns, status.st_ino, hashlib.sha256(CONTENT).hexdigest()]
    assert json.loads(memory.read_text()) == {str(path): expected}
    assert [each.name for each in memory.parent.iterdir()] == ["verified.json"]


def change_content(path: Path) -> None:
    put(path, CONTENT.replace(b"should", b"coulld"), hours_ago=2)


def change_size(path: Path) -> None:
    status = path.stat()
    path.write_bytes(CONTENT + b"!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def change_inode(path: Path) -> None:
    status = path.stat()
    other = path.with_name("b")
    other.write_bytes(CONTENT[::-1])
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("change", [change_content, change_size, change_inode])
def test_changed_file_is_hashed_again_and_refused(
    path: Path, hashed: list[str], change: Callable[[Path], None]
) -> None:
    verify(path, DIGESTS, "some/set")
    change(path)
    with pytest.raises(BrokenFile) as caught:
        verify(path, DIGESTS, "some/set")
    message = str(caught.value)
    assert message.startswith(f"{path} is truncated or not the file it should be: its SHA-256 is ")
    assert hashlib.sha256(path.read_bytes()).hexdigest() in message
    assert all(digest in message for digest in DIGESTS)
    assert message.endswith("; move it aside and run: doxa data get some/set")
    assert hashed == ["a", "a"]
    put(path, CONTENT)
    verify(path, DIGESTS, "some/set")
    assert hashed == ["a", "a", "a"]


def test_what_is_remembered_of_another_file_is_not_believed(path: Path, hashed: list[str]) -> None:
    verify(path, DIGESTS, "set")
    with pytest.raises(BrokenFile):
        verify(path, frozenset({"0" * 64}), "set")
    assert hashed == ["a", "a"]


def test_file_that_was_written_a_moment_ago_is_not_remembered(path: Path, hashed: list[str], memory: Path) -> None:
    """Another write in the same moment might leave size and time as they are."""
    put(path, CONTENT, hours_ago=0)
    verify(path, DIGESTS, "set")
    assert not memory.exists()
    assert hashed == ["a"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"null",
        b"[1, 2]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"%s": null}',
        b'{"%s": []}',
        b'{"%s": [1, 2, 3, 4]}',
        b'{"%s": {"0": 1}}',
        b'{"%s": [1e999, NaN, true, "x"]}',
        b'{"x": ' + b"9" * 5000 + b"}",
    ],
)
def test_damaged_memory_is_ignored_and_rewritten(path: Path, hashed: list[str], memory: Path, damage: bytes) -> None:
    memory.parent.mkdir(parents=True)
    memory.write_bytes(damage.replace(b"%s", str(path).encode()))
    verify(path, DIGESTS, "set")
    assert list(json.loads(memory.read_text())) == [str(path)]
    verify(path, DIGESTS, "set")
    assert hashed == ["a"]


def test_memory_is_bounded_and_forgets_files_that_are_gone(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified, "ENTRIES", 3)
    paths = [tmp_path / str(number) for number in range(5)]
    for path in paths:
        put(path, CONTENT)
        verify(path, DIGESTS, "set")
    assert list(json.loads(memory.read_text())) == [str(path) for path in paths[2:]]
    paths[3].unlink()
    put(paths[4], CONTENT, hours_ago=3)
    verify(paths[4], DIGESTS, "set")
    assert list(json.loads(memory.read_text())) == [str(paths[2]), str(paths[4])]


def test_cache_that_cannot_be_written_costs_nothing_but_time(path: Path, hashed: list[str], cache: Path) -> None:
    cache.parent.parent.joinpath("doxa").write_bytes(b"a file where a folder should be")
    for _ in range(2):
        verify(path, DIGESTS, "set")
    assert hashed == ["a", "a"]


def test_want_of_a_home_costs_nothing_but_time(path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    verify(path, DIGESTS, "set")
    assert hashed == ["a"]


@pytest.mark.parametrize("name", ["mushroom", "temperature/uccle", "pima_diabetes", "uci_regression/bostonHousing"])
def test_one_flipped_byte_of_a_set_is_refused_and_mended(
    name: str, real: Callable[[str], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hashed: list[str]
) -> None:
    (stored,) = real(name)
    copy = tmp_path / data.card(name).files[0].path
    copy.parent.mkdir(parents=True)
    raw = stored.read_bytes()
    flipped = raw[:-40] + bytes([raw[-40] ^ 1]) + raw[-39:]
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    put(copy, flipped)
    for ask in (data.load, data.get):
        with pytest.raises(BrokenFile, match=f"move it aside and run: doxa data get {name}"):
            ask(name)
    put(copy, raw)
    hashed.clear()
    for _ in range(2):
        data.load(name)
        assert data.get(name) == [copy]
    assert hashed == [copy.name]


def test_flipped_byte_of_a_batch_is_refused_in_every_form(
    real: Callable[[str], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    import numpy as np

    stored = [path for path in real("cifar10") if path.name.startswith("test_batch")]
    if len(stored) != 5:
        pytest.skip("DOXA_DATA holds CIFAR-10 in another form")
    images, labels = data.cifar10_batch("test_batch")
    folder = tmp_path / "cifar10"
    folder.mkdir()
    for path in stored:
        shutil.copy(path, folder)
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    labels[17] ^= 1
    np.save(folder / "test_batch.labels.npy", labels.astype(np.uint8))
    with pytest.raises(BrokenFile, match=r"test_batch\.\* is truncated or not the file it should be"):
        data.cifar10_batch("test_batch")
    labels[17] ^= 1
    records = np.column_stack([labels.astype(np.uint8), images.reshape(10_000, -1)])
    put(folder / "cifar-10-batches-bin" / "test_batch.bin", records.tobytes())
    assert np.array_equal(data.cifar10_batch("test_batch")[0], images)
    records[99, 99] ^= 1
    put(folder / "cifar-10-batches-bin" / "test_batch.bin", records.tobytes())
    with pytest.raises(BrokenFile, match=r"test_batch\.bin is truncated or not the file it should be"):
        data.cifar10_batch("test_batch")
    (folder / "cifar-10-batches-bin" / "test_batch.bin").unlink()
    put(folder / "cifar-10-binary.tar.gz", b"no archive")
    with pytest.raises(BrokenFile, match=r"cifar-10-binary\.tar\.gz is truncated or not the file it should be"):
        data.cifar10_batch("test_batch")


@pytest.mark.parametrize("damage", ["empty", "flipped"])
def test_batches_that_are_there_are_verified_and_not_only_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hashed: list[str], damage: str
) -> None:
    module = sys.modules["doxa.data.sets.cifar10"]
    monkeypatch.setattr(module, "ROWS", 1)
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    record = bytes(module.RECORD)
    monkeypatch.setattr(module, "BATCHES", dict.fromkeys(module.BATCHES, hashlib.sha256(record).hexdigest()))
    paths = [tmp_path / "cifar10" / "cifar-10-batches-bin" / f"{name}.bin" for name in module.BATCHES]
    for path in paths:
        put(path, record)
    for _ in range(2):
        assert data.get("cifar10") == paths
    assert sorted(hashed) == sorted(path.name for path in paths)
    put(paths[3], b"" if damage == "empty" else record[:-1] + b"\1", hours_ago=2)
    with pytest.raises(BrokenFile, match=r"data_batch_4\.bin is truncated or not the file it should be"):
        data.get("cifar10")


def test_sheets_that_are_there_are_read_and_not_only_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    for place in data.card("cifar10").files[0].instead[-1]:
        put(tmp_path / place, b"")
    with pytest.raises(BrokenFile, match=r"data_batch_1\.labels\.npy is truncated"):
        data.get("cifar10")
