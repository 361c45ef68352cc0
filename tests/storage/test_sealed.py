"""Sealed files: one open file, read into memory of its own; what is wrong with it is said as what it is."""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from doxa import BadInput, BrokenFile
from doxa.storage import reading, sealed
from doxa.storage.reading import file_sha256, open_file
from doxa.storage.sealed import VERSION, canonical_json, read, write
from for_storage import forge, sealed_bytes

KIND = "numbers"
TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor([True, False])}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "a.doxa", KIND, {"step": 3}, TENSORS)
    return tmp_path / "a.doxa"


def test_tensors_do_not_change_with_the_file_that_they_were_read_from(path: Path) -> None:
    _, tensors = read(path, KIND)
    with open(path, "r+b") as file:
        file.seek(-16, os.SEEK_END)
        file.write(bytes(16))
    assert torch.equal(tensors["a"], TENSORS["a"])
    with open(path, "r+b") as file:
        file.truncate(10)
    assert torch.equal(tensors["a"], TENSORS["a"]), "and of a mapped file the process would have died"


@pytest.mark.parametrize("version", ["NaN", "Infinity", "-Infinity", "-1", "0", "true", '"1"', "1.0", "null", "[1]"])
def test_a_version_is_a_whole_number_from_one_up(version: str, path: Path) -> None:
    forge(path, None, TENSORS, f'{{"format":"{KIND}","version":{version}}}')
    with pytest.raises(BrokenFile, match=r"header that Doxa never writes.*version is"):
        read(path, KIND)


@pytest.mark.parametrize("kind", ["1", "null", '["numbers"]', "{}"])
def test_a_kind_is_a_name(kind: str, path: Path) -> None:
    forge(path, None, TENSORS, f'{{"format":{kind},"version":1}}')
    with pytest.raises(BrokenFile, match=r"header that Doxa never writes.*format is"):
        read(path, KIND)


@pytest.mark.parametrize("depth", [150, 400, 10_000])
def test_deep_nesting_is_refused(depth: int, path: Path) -> None:
    forge(path, None, TENSORS, f'{{"format":"{KIND}","version":1,"deep":{"[" * depth}{"]" * depth}}}')
    with pytest.raises(BrokenFile, match="nested deeper than 100 levels"):
        read(path, KIND)


@pytest.mark.parametrize("escape", ["\\ud800", "\\uDFFF", "x\\udc00y"])
def test_half_a_character_is_refused(escape: str, path: Path) -> None:
    forge(path, None, TENSORS, f'{{"format":"{KIND}","version":1,"name":"{escape}"}}')
    with pytest.raises(BrokenFile, match="header that Doxa never writes"):
        read(path, KIND)
    outer = json.dumps({"header": f'{{"name":"{escape}"}}'.encode().decode("unicode_escape"), "sha256": "0"})
    entries = {"__metadata__": {"doxa": outer}}
    content = json.dumps(entries).encode()
    path.write_bytes(len(content).to_bytes(8, "little") + content)
    with pytest.raises(BrokenFile):
        read(path, KIND)


def test_a_backslash_before_a_u_is_plain_text(path: Path) -> None:
    write(path, KIND, {"name": "\\ud800 and é"}, {})
    assert read(path, KIND)[0]["name"] == "\\ud800 and é"


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, json.loads("[" * 300 + "]" * 300)])
def test_what_could_not_be_read_again_is_not_written(value: object, path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(BadInput, match="cannot be written"):
        write(path, KIND, {"value": value}, {})
    assert path.read_bytes() == before


def test_numbers_that_the_format_does_not_have_are_not_written(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(BadInput, match=r"cannot be written: a holds torch\.complex128"):
        write(path, KIND, {}, {"a": torch.ones(2, dtype=torch.complex128)})
    assert path.read_bytes() == before


def test_what_is_written_is_what_safetensors_would_write(path: Path) -> None:
    """The same header to the letter, but for the order of tensors whose numbers are of one size."""
    tensors = {"ä": torch.ones(2, 3), "b": torch.zeros(0, 2), "c": torch.tensor(True), "d": torch.arange(3)}
    write(path, KIND, {"name": '\\ é " \u0001'}, tensors)
    header, again = read(path, KIND)
    assert path.read_bytes() == sealed_bytes(header, tensors)
    assert all(torch.equal(again[name], t) for name, t in tensors.items())


ENTRIES = {
    "offsets that overlap": {"a": {"data_offsets": [0, 24]}, "b": {"data_offsets": [22, 24]}},
    "a gap": {"a": {"data_offsets": [0, 24]}, "b": {"data_offsets": [25, 27]}},
    "more than there is": {"a": {"shape": [1 << 40, 3], "data_offsets": [2, 2 + (12 << 40)]}},
    "a negative offset": {"b": {"data_offsets": [-2, 0]}},
    "a negative shape": {"a": {"shape": [-2, -3]}},
    "a shape of truths": {"b": {"shape": [True, 2]}},
    "a shape of fractions": {"b": {"shape": [2.0]}},
    "a shape beyond all memory": {"b": {"shape": [1 << 61, 1 << 61, 0], "data_offsets": [0, 0]}},
    "no such numbers": {"a": {"dtype": "F128"}},
    "numbers by number": {"a": {"dtype": 32}},
    "a field too many": {"a": {"more": 1}},
    "offsets that are none": {"a": {"data_offsets": "24"}},
    "one offset": {"a": {"data_offsets": [24]}},
    "another size": {"a": {"shape": [2, 2]}},
    "another kind of numbers": {"a": {"dtype": "F64"}},
}


@pytest.mark.parametrize("change", ENTRIES.values(), ids=ENTRIES)
def test_what_a_file_says_of_its_tensors_must_fit_its_bytes(change: dict[str, dict[str, object]], path: Path) -> None:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    entries = json.loads(content[8 : 8 + length])
    for name, fields in change.items():
        entries[name] |= fields
    head = json.dumps(entries).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + content[8 + length :])
    with pytest.raises(BrokenFile, match="cannot be read: it is damaged, cut short, or not a Doxa file"):
        read(path, KIND)


@pytest.mark.parametrize("head", [b"", b"\0" * 7, b"\xff" * 8, b"\xff" * 64, bytes(8), (1 << 40).to_bytes(8, "little")])
def test_a_length_of_header_that_is_none_is_refused(head: bytes, path: Path) -> None:
    path.write_bytes(head)
    with pytest.raises(BrokenFile, match="cannot be read"):
        read(path, KIND)


def test_a_yes_or_no_is_one_or_the_other(path: Path) -> None:
    content = sealed_bytes({"format": KIND, "version": 1}, {"b": torch.tensor([1, 2], dtype=torch.uint8)})
    path.write_bytes(content)
    assert read(path, KIND)[1]["b"].tolist() == [1, 2]
    length = int.from_bytes(content[:8], "little")
    head = content[8 : 8 + length].replace(b'"U8"', b'"BOOL"')
    path.write_bytes(len(head).to_bytes(8, "little") + head + content[8 + length :])
    with pytest.raises(BrokenFile, match="neither"):
        read(path, KIND)


# What may not be read, and what is no file.


def test_permission_denied_is_not_called_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(BrokenFile, match="cannot be read: Permission denied") as refused:
        read(path, KIND)
    assert "damage" not in str(refused.value)


def test_an_error_of_the_disk_is_not_called_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(BrokenFile, match="cannot be read: Input/output error"):
        read(path, KIND)


def test_what_is_no_file_is_said_to_be_none(tmp_path: Path, path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("none", "", "pipe", "a.doxa/below"):
        with pytest.raises(BrokenFile, match="is not a file; expected one written by Doxa"):
            read(tmp_path / name, KIND)
    with pytest.raises(BrokenFile, match="is not a file; expected one written by Doxa"):
        read("/dev/zero", KIND)
    with pytest.raises(BrokenFile, match=r"is not a file .*null"):
        read(tmp_path / "a\0b", KIND)
    with pytest.raises(BrokenFile, match="cannot be read: Too many levels"):
        read(tmp_path / "loop", KIND)
    with pytest.raises(BrokenFile, match="cannot be read: File name too long"):
        read(tmp_path / ("a" * 300), KIND)


# The digest of a whole file.


def test_a_known_digest_is_compared_and_no_other_hash_is_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = file_sha256(path)
    assert len(digest) == 64
    monkeypatch.setattr(sealed, "sha256_of", None)  # which nothing may call
    header, tensors = read(path, KIND, sha256=digest)
    assert header == {"format": KIND, "version": VERSION, "step": 3}
    assert all(torch.equal(tensors[name], t) for name, t in TENSORS.items())


def test_no_flipped_byte_passes_a_known_digest(path: Path) -> None:
    digest, content = file_sha256(path), path.read_bytes()
    with open(path, "r+b", buffering=0) as file:
        for i in range(0, len(content), 3):
            os.pwrite(file.fileno(), bytes([content[i] ^ 1]), i)
            with pytest.raises(BrokenFile):
                read(path, KIND, sha256=digest)
            os.pwrite(file.fileno(), content[i : i + 1], i)


@pytest.mark.parametrize("large", [16, 1 << 30])
def test_large_tensors_lie_in_memory_like_small_ones(large: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGE", large)
    numbers = torch.arange(700_001.0)  # more than is hashed at a time, and no whole number of pages
    write(path, KIND, {}, {"a": numbers})
    for digest in (None, file_sha256(path)):
        loaded = read(path, KIND, digest)[1]["a"]
        assert torch.equal(loaded, numbers)
        assert torch.equal(loaded.clone().share_memory_().add_(1), numbers + 1)


def test_a_file_that_is_whole_but_another_is_refused(path: Path) -> None:
    digest = file_sha256(path)
    write(path, KIND, {"step": 4}, TENSORS)
    assert read(path, KIND)[0]["step"] == 4
    with pytest.raises(BrokenFile, match="damaged or another file: its SHA-256 is not"):
        read(path, KIND, sha256=digest)


@pytest.mark.parametrize("known", [False, True])
def test_a_file_that_is_written_to_while_it_is_read_is_refused(
    known: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = file_sha256(path) if known else None
    parse = sealed._parse_metadata

    def touch(*arguments: object) -> object:
        with open(path, "ab") as file:
            file.write(b"\0")
        return parse(*arguments)

    monkeypatch.setattr(sealed, "_parse_metadata", touch)
    with pytest.raises(BrokenFile, match="was changed while it was read"):
        read(path, KIND, sha256=digest)


def test_a_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    import hashlib

    for size in (0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20):
        content = os.urandom(size)
        (tmp_path / "a").write_bytes(content)
        assert file_sha256(tmp_path / "a") == hashlib.sha256(content).hexdigest()
    with pytest.raises(BrokenFile, match="is not a file"):
        file_sha256(tmp_path)


def test_a_file_is_closed_whatever_comes_of_it(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for content in (path.read_bytes(), b"", b"x" * 100):
        path.write_bytes(content)
        for _ in range(3):
            with suppress(BrokenFile):
                read(path, KIND)
    with open_file(path, "a file") as file:
        assert stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_the_file_stays_one_that_others_read(path: Path) -> None:
    assert all(torch.equal(t, TENSORS[name]) for name, t in load_file(path).items())
    assert canonical_json({"b": 1, "a": [1]}) == '{"a":[1],"b":1}'


def test_a_lack_of_memory_is_not_called_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(size: int) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(reading, "_fresh_memory", fail)
    with pytest.raises(BrokenFile, match=r"cannot be read: there is no memory for \d+ bytes of it"):
        read(path, KIND)
