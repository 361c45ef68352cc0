"""Where files are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from doxa.data.card import File
from doxa.data.files import find, find_file, folders, located, read
from doxa.errors import BadInput, BrokenFile

FILE = File("set/a.gz", "https://example.org/a.gz", 1, None, instead=(("set/a",),))
PAIR = File("set/both.tar", "https://example.org/both.tar", 1, None, instead=(("set/one", "set/two"),))


def put(folder: Path, place: str) -> Path:
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


def test_the_named_folder_comes_before_the_cache(here: Path, cache: Path) -> None:
    assert folders() == [here, cache]
    cached = put(cache, "set/a.gz")
    assert find_file(FILE, "set") == cached
    mine = put(here, "set/a")
    assert find_file(FILE, "set") == mine
    assert find("set/a.gz", name="set", source="nowhere") == cached


@pytest.mark.parametrize("unset", [True, False])
def test_without_a_named_folder_the_cache_is_all(cache: Path, monkeypatch: pytest.MonkeyPatch, unset: bool) -> None:
    monkeypatch.setenv("DOXA_DATA", "")
    if unset:
        monkeypatch.delenv("DOXA_DATA")
    assert folders() == [cache]
    with pytest.raises(BadInput, match="DOXA_DATA is not set") as caught:
        find_file(FILE, "set")
    assert str(caught.value).startswith(f"the file {cache}/set/a.gz (or {cache}/set/a) is missing; put it there, from")


def test_the_cache_is_in_the_home_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOXA_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folders() == [tmp_path / ".cache" / "doxa" / "data"]


def test_missing_file_is_said_with_its_place_its_source_and_the_command(here: Path, cache: Path) -> None:
    with pytest.raises(BadInput) as caught:
        find_file(FILE, "some/set")
    assert str(caught.value) == (
        f"the file {here}/set/a.gz (or {here}/set/a) is missing; put it there, from https://example.org/a.gz, "
        f"or run: doxa data get some/set (the cache {cache} does not hold it either)"
    )


def test_missing_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOXA_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match=r"nowhere, which is no folder; create it"):
        folders()


def test_home_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOXA_DATA", "~")
    assert folders()[0] == tmp_path


def test_relative_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOXA_DATA", ".")
    assert folders()[0].is_absolute()


def test_what_serves_instead_counts_only_when_complete(here: Path, cache: Path) -> None:
    one = put(here, "set/one")
    put(cache, "set/two")
    assert located(PAIR) == []
    two = put(here, "set/two")
    assert located(PAIR) == [one, two]
    whole = put(here, "set/both.tar")
    assert located(PAIR) == [whole]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="cannot be read") as caught:
        read(tmp_path)
    assert str(caught.value).startswith(str(tmp_path))
