"""Where files are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from doxa import data
from doxa.data.card import File
from doxa.data.files import data_folders, find_file, find_path, locate, read_bytes
from doxa.errors import BadInput, BrokenFile

FILE = File("set/a.gz", "https://example.org/a.gz", 1, "0" * 64, instead=(("set/a",),))
PAIR = File("set/both.tar", "https://example.org/both.tar", 1, "0" * 64, instead=(("set/one", "set/two"),))


def put(folder: Path, relative_path: str) -> Path:
    path = folder / relative_path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


def test_the_named_folder_comes_before_the_cache(data_folder: Path, cache: Path) -> None:
    assert data_folders() == [data_folder, cache]
    cached = put(cache, "set/a.gz")
    assert find_file(FILE, "set") == cached
    mine = put(data_folder, "set/a")
    assert find_file(FILE, "set") == mine
    assert find_path("set/a.gz", name="set", source="nowhere") == cached


@pytest.mark.parametrize("unset", [True, False])
def test_without_a_named_folder_the_cache_is_all(cache: Path, monkeypatch: pytest.MonkeyPatch, unset: bool) -> None:
    monkeypatch.setenv("DOXA_DATA", "")
    if unset:
        monkeypatch.delenv("DOXA_DATA")
    assert data_folders() == [cache]
    with pytest.raises(BadInput, match="DOXA_DATA is not set") as caught:
        find_file(FILE, "set")
    assert str(caught.value).startswith(f"the file {cache}/set/a.gz (or {cache}/set/a) is missing; put it there, from")


def test_the_cache_is_in_the_home_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOXA_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folders() == [tmp_path / ".cache" / "doxa" / "data"]


def test_missing_file_is_said_with_its_place_its_source_and_the_command(data_folder: Path, cache: Path) -> None:
    with pytest.raises(BadInput) as caught:
        find_file(FILE, "some/set")
    assert str(caught.value) == (
        f"the file {data_folder}/set/a.gz (or {data_folder}/set/a) is missing; put it there, from "
        f"https://example.org/a.gz, or run: doxa data get some/set (the cache {cache} does not hold it either)"
    )


def test_missing_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOXA_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match=r"nowhere, which is no folder; create it"):
        data_folders()


def test_home_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOXA_DATA", "~")
    assert data_folders()[0] == tmp_path


def test_relative_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOXA_DATA", ".")
    assert data_folders()[0].is_absolute()


def test_what_serves_instead_counts_only_when_complete(data_folder: Path, cache: Path) -> None:
    first_file = put(data_folder, "set/one")
    put(cache, "set/two")
    assert locate(PAIR) == []
    second_file = put(data_folder, "set/two")
    assert locate(PAIR) == [first_file, second_file]
    archive_file = put(data_folder, "set/both.tar")
    assert locate(PAIR) == [archive_file]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="cannot be read") as caught:
        read_bytes(tmp_path)
    assert str(caught.value).startswith(str(tmp_path))


def test_want_of_a_home_hides_nothing_that_is_in_the_named_folder(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert data_folders() == [data_folder]
    with pytest.raises(BadInput, match=r"\(and there is no home that could hold a cache\)"):
        find_file(FILE, "set")
    mine = put(data_folder, "set/a")
    assert find_file(FILE, "set") == mine
    placed = put(data_folder, data.card("mushroom").files[0].path)
    assert data.get("mushroom") == [placed]
    monkeypatch.delenv("DOXA_DATA")
    for ask in (data.get, data.path):
        with pytest.raises(BadInput, match="there is no home folder that could hold a cache; set HOME"):
            ask("mushroom")
