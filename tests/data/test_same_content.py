"""Good content in another form or another place: it is found, and loaded as the published file is."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from doxa import data
from doxa.data import same_content
from doxa.data.verified import verify
from doxa.errors import BrokenFile

LINES = b"1,2\n3,4\n"
PACKED = bytes(range(256)) * 99


def digests(content: bytes) -> frozenset[str]:
    return frozenset({hashlib.sha256(content).hexdigest()})


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_what_was_packed_anew_is_known_by_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(PACKED, 1)
    path = put(tmp_path / "a.gz", packed)
    assert verify(path, digests(PACKED), "set") == path
    for damaged in (packed[:-9], packed[:40] + b"!" + packed[41:], gzip.compress(PACKED + b"!"), packed + b"!"):
        with pytest.raises(BrokenFile, match="move it aside and run: doxa data get set"):
            verify(put(path, damaged), digests(PACKED), "set")
    monkeypatch.setattr(same_content, "UNPACKED_BYTES", len(PACKED) - 1)
    with pytest.raises(BrokenFile, match="not the file it should be"):
        verify(put(path, packed), digests(PACKED), "set")


@pytest.mark.parametrize("suffix", [".csv", ".data", ".txt"])
def test_text_is_known_whatever_ends_its_lines(tmp_path: Path, suffix: str) -> None:
    dos = LINES.replace(b"\n", b"\r\n")
    for published, stored in ((LINES, dos), (dos, LINES)):
        path = put(tmp_path / f"a{suffix}", stored)
        assert verify(path, digests(published), "set") == path
    with pytest.raises(BrokenFile):
        verify(put(path, dos.replace(b"3", b"5")), digests(LINES), "set")


@pytest.mark.parametrize("name", ["a-ubyte", "a.bin", "a.gz"])
def test_ends_of_lines_are_content_where_there_is_no_text(tmp_path: Path, name: str) -> None:
    with pytest.raises(BrokenFile):
        verify(put(tmp_path / name, LINES.replace(b"\n", b"\r\n")), digests(LINES), "set")


def test_mushrooms_with_other_ends_of_lines_load(
    real: Callable[[str], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stored,) = real("mushroom")
    expected = data.load("mushroom")
    raw = stored.read_bytes()
    path = put(tmp_path / "mushroom" / stored.name, raw.replace(b"\n", b"\r\n"))
    assert path.read_bytes() != raw
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    loaded = data.load("mushroom")
    assert data.get("mushroom") == [path]
    assert np.array_equal(loaded.x, expected.x)
    assert np.array_equal(loaded.y, expected.y)


def test_a_damaged_file_gives_way_to_a_good_one_in_another_place(
    real: Callable[[str], list[Path]], tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = real("mnist")
    labels = [gzip.decompress(path.read_bytes()) if "labels" in path.name else b"" for path in stored]
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    for path in stored:
        (tmp_path / "mnist").mkdir(exist_ok=True)
        (tmp_path / "mnist" / path.name).symlink_to(path)
    damaged = [tmp_path / "mnist" / stored[number].name for number in (1, 3)]
    for path in damaged:
        path.unlink()
        put(path, b"no labels")
    with pytest.raises(BrokenFile, match=f"{damaged[0].name} is truncated"):
        data.load("mnist")
    unpacked = put(damaged[0].with_suffix(""), labels[1])
    cached = put(cache / "mnist" / stored[3].name, gzip.compress(labels[3], 1))
    assert data.load("mnist").y_test.tolist() == list(labels[3][8:])
    assert data.get("mnist")[1::2] == [unpacked, cached]
