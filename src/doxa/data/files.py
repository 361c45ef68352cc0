"""Where data sets lie on disk: in the folder that DOXA_DATA names, else in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from doxa.data.card import File
from doxa.errors import BadInput, BrokenFile


def cache() -> Path:
    """The folder of data sets in the user's cache; it need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "doxa" / "data"


def folders() -> list[Path]:
    """The folders to look in, in order and absolute; new files belong in the first."""
    named = os.environ.get("DOXA_DATA", "")
    if not named:
        return [cache()]
    path = Path(os.path.expanduser(named)).absolute()
    if not path.is_dir():
        raise BadInput(f"DOXA_DATA names {path}, which is no folder; create it or set DOXA_DATA to another")
    return [path, cache()]


def first(*places: str) -> Path | None:
    """The first of `places`, relative to the folders, that is a file."""
    return next((path for folder in folders() for place in places if (path := folder / place).is_file()), None)


def located(file: File) -> list[Path]:
    """The file, or all those that serve instead of it; empty where neither is complete in one folder."""
    for folder in folders():
        for group in ((file.path,), *file.instead):
            paths = [folder / place for place in group]
            if all(path.is_file() for path in paths):
                return paths
    return []


def find(*places: str, name: str, source: str) -> Path:
    """The first of `places` that is a file of the set `name`; the error where none is says what to put where."""
    found = first(*places)
    if found is None:
        raise missing(places, name, source)
    return found


def find_file(file: File, name: str) -> Path:
    """The file of the set `name`, or the one that serves instead of it."""
    return find(file.path, *(place for (place,) in file.instead), name=name, source=file.url)


def missing(places: Sequence[str], name: str, source: str) -> BadInput:
    """The error that says which file of the set `name` to put where, and how to fetch it."""
    here, *elsewhere = folders()
    wanted, *others = (str(here / place) for place in places)
    instead = f" (or {' or '.join(others)})" if others else ""
    looked = (
        f"the cache {elsewhere[0]} does not hold it either"
        if elsewhere
        else "DOXA_DATA is not set; set it to keep data sets in a folder of your own, e.g. export DOXA_DATA=$HOME/data"
    )
    return BadInput(
        f"the file {wanted}{instead} is missing; put it there, from {source}, or run: doxa data get {name} ({looked})"
    )


def read(path: Path) -> bytes:
    """All bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BrokenFile(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error


def broken(path: Path, reason: str) -> BrokenFile:
    """The error for a file that is there but is not what it should be."""
    return BrokenFile(f"{path} is truncated or not the file it should be: {reason}; get a fresh copy of it")
