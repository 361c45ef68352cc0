"""Doxa's folder in the user's cache, and whether it is the user's alone."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from doxa.errors import BadInput

ROOT_GROUP = 0
UID_MAP, OVERFLOW_UID = Path("/proc/self/uid_map"), Path("/proc/sys/fs/overflowuid")
NEEDS_OTHER = "set XDG_CACHE_HOME to a folder of yours that lies below folders of yours or of root alone"


@dataclass(frozen=True)
class Intruder:
    """Who else could put something in a folder, in words, and what to do about it."""

    reason: str
    advice: str


def cache_folder() -> Path:
    """The folder; it need not exist."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise BadInput("there is no home folder that could hold a cache; set HOME or XDG_CACHE_HOME") from None
    return base.absolute() / "doxa"


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone, whatever the umask."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was quicker
            each.mkdir(mode=0o700)


def is_private(path: Path) -> bool:
    """Whether it is there, belongs to this user, and nobody else can write to it."""
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def find_intruder(folder: Path) -> Intruder | None:
    """Who else could put something in a folder, or another in its place; None where nobody could.

    Everything above counts, as who can rename a folder decides what lies under its name. root may do all anyway, and in
    a folder like /tmp, with the sticky bit, nobody can rename what belongs to somebody else.
    """
    while not folder.exists():
        folder = folder.parent
    resolved = folder.resolve()
    trusted = {0, os.geteuid(), _root_seen_from_namespace()}
    for place in (resolved, *resolved.parents):
        status = place.stat()
        if status.st_uid not in trusted:
            return Intruder(f"{place} belongs to another user", NEEDS_OTHER)
        if status.st_mode & stat.S_ISVTX:
            continue
        if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_alone_in(status.st_gid)):
            is_own = status.st_uid == os.geteuid()
            return Intruder(f"others can write to {place}", f"chmod go-w {place}" if is_own else NEEDS_OTHER)
    return None


def _root_seen_from_namespace() -> int | None:
    """The number that the host's root has where its own is not known, as in rootless containers; None elsewhere.

    Whoever else is not known there has it too, so a folder that bears it counts as root's only on the way to what is
    this user's: what is kept must belong to the user itself. Outside, the number is that of an account like any other.
    """
    try:
        maps_all = any(line.split() == ["0", "0", str(2**32 - 1)] for line in UID_MAP.read_text().splitlines())
        return None if maps_all else int(OVERFLOW_UID.read_text())
    except (OSError, ValueError):
        return None


def _is_alone_in(group_number: int) -> bool:
    """Whether this user is all there is in a group, as where each has one of the same name; root does not count."""
    import grp  # where there are groups
    import pwd

    if group_number == ROOT_GROUP:
        return True
    try:
        group, user = grp.getgrgid(group_number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    is_own = group_number == user.pw_gid and group.gr_name == user.pw_name
    return is_own and not set(group.gr_mem) - {user.pw_name}
