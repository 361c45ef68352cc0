"""Where data sets lie on disk: in the folder that DOXA_DATA names, else in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from doxa.data.card import File
from doxa.data.verified import verify
from doxa.errors import BadInput, BrokenFile
from doxa.storage.cache import cache_folder


def cached_data_folder() -> Path:
    """The folder of data sets in the user's cache; it need not exist."""
    return cache_folder() / "data"


def data_folders() -> list[Path]:
    """The folders to look in, in order and absolute; new files belong in the first."""
    named_folder = os.environ.get("DOXA_DATA", "")
    if not named_folder:
        return [cached_data_folder()]
    path = Path(os.path.expanduser(named_folder)).absolute()
    if not path.is_dir():
        raise BadInput(f"DOXA_DATA names {path}, which is no folder; create it or set DOXA_DATA to another")
    try:
        return [path, cached_data_folder()]
    except BadInput:  # no home, and so no cache: what is in the named folder is there all the same
        return [path]


def first_existing(*relative_paths: str) -> Path | None:
    """The first of `relative_paths`, relative to the folders, that is a file."""
    return next(existing(*relative_paths), None)


def existing(*relative_paths: str) -> Iterator[Path]:
    """Those of `relative_paths`, relative to each of the folders in turn, that are files."""
    for folder in data_folders():
        for relative_path in relative_paths:
            if (path := folder / relative_path).is_file():
                yield path


def locate(file: File) -> list[Path]:
    """The file, or all those that serve instead of it; empty where neither is complete in one folder."""
    return next(candidates(file), [])


def candidates(file: File) -> Iterator[list[Path]]:
    """Each place of the file, and of all those that serve instead of it, where it is complete in one folder."""
    for folder in data_folders():
        for group in ((file.path,), *file.instead):
            paths = [folder / relative_path for relative_path in group]
            if all(path.is_file() for path in paths):
                yield paths


def find_good(file: File, name: str) -> list[Path]:
    """The first of the candidates that holds what it should; BrokenFile where none does, empty where there is none."""
    damage: BrokenFile | None = None
    for paths in candidates(file):
        try:
            if len(paths) == 1:
                verify(paths[0], file.digests, name)
            elif file.verify_together is not None:
                file.verify_together(paths)
            return paths
        except BrokenFile as error:
            damage = damage or error
    if damage is not None:
        raise damage
    return []


def find_path(*relative_paths: str, name: str, source: str) -> Path:
    """The first of `relative_paths` that is a file of the set `name`; an error where none is says what to put where."""
    path = first_existing(*relative_paths)
    if path is None:
        raise missing_file_error(relative_paths, name, source)
    return path


def find_file(file: File, name: str) -> Path:
    """The file of the set `name`, or the one that serves instead of it, with the content that it should have."""
    paths = find_good(file, name)
    if not paths:
        raise missing_file_error([file.path, *(place for (place,) in file.instead)], name, file.url)
    return paths[0]


def missing_file_error(relative_paths: Sequence[str], name: str, source: str) -> BadInput:
    """The error that says which file of the set `name` to put where, and how to fetch it."""
    folder, *other_folders = data_folders()
    expected_path, *alternatives = (str(folder / relative_path) for relative_path in relative_paths)
    instead = f" (or {' or '.join(alternatives)})" if alternatives else ""
    search_note = (
        f"the cache {other_folders[0]} does not hold it either"
        if other_folders
        else "and there is no home that could hold a cache"
        if os.environ.get("DOXA_DATA")
        else "DOXA_DATA is not set; set it to keep data sets in a folder of your own, e.g. export DOXA_DATA=$HOME/data"
    )
    return BadInput(
        f"the file {expected_path}{instead} is missing; put it there, from {source}, or run: doxa data get {name} "
        f"({search_note})"
    )


def read_bytes(path: Path) -> bytes:
    """All bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BrokenFile(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error


def broken_file_error(path: Path, reason: str) -> BrokenFile:
    """The error for a file that is there but is not what it should be."""
    return BrokenFile(f"{path} is truncated or not the file it should be: {reason}; get a fresh copy of it")
