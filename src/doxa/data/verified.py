"""Files that were found to be what they should be: hashed once, and again when they have changed."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

from doxa.data.same_content import other_digests
from doxa.errors import BadInput, BrokenFile
from doxa.storage.cache import cache_folder, make_private
from doxa.storage.disk import atomic_write
from doxa.storage.lock import folder_lock

MEMORY = "verified.json"
MEMORY_BYTES, ENTRIES = 1_000_000, 1000  # at most
SETTLED = 2_000_000_000  # nanoseconds after which no change can share the time of the one before

Stamp = list[int]  # size, mtime in nanoseconds, inode


def verify(path: Path, digests: Set[str], name: str) -> Path:
    """The path of a file of the set `name`, if its SHA-256, or that of what it holds, is one of `digests`.

    What was verified is remembered in the cache by path, size, time and inode, so that loading stays quick.
    """
    path = path.absolute()
    try:
        with open(path, "rb") as file:
            stamp = _stamp(os.fstat(file.fileno()))
            remembered = _read_memory().get(str(path), [])
            if remembered[:-1] == stamp and remembered[-1] in digests:
                return path
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest not in digests:
                digest = next((other for other in other_digests(file, path) if other in digests), digest)
            is_settled = time.time_ns() - stamp[1] > SETTLED and _stamp(os.fstat(file.fileno())) == stamp
    except OSError as error:
        raise BrokenFile(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error
    require_known(path, digest, digests, name)
    if is_settled:
        _remember(path, [*stamp, digest])
    return path


def require_known(path: Path, digest: str, digests: Set[str], name: str) -> None:
    """Refuse what does not have one of the SHA-256 that it should have."""
    if digest not in digests:
        expected = " or ".join(sorted(digests))
        raise BrokenFile(
            f"{path} is truncated or not the file it should be: its SHA-256 is {digest}, expected {expected}; "
            f"move it aside and run: doxa data get {name}"
        )


def _stamp(status: os.stat_result) -> Stamp:
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _read_memory() -> dict[str, list[int | str]]:
    """What is remembered; whatever is damaged is not."""
    try:
        with open(cache_folder() / MEMORY, "rb") as file:
            content = json.loads(file.read(MEMORY_BYTES))
    except (OSError, ValueError, RecursionError):  # BadInput for want of a home is a ValueError
        return {}
    if not isinstance(content, dict):
        return {}
    return {path: entry for path, entry in content.items() if _is_entry(entry)}


def _is_entry(entry: object) -> bool:
    return isinstance(entry, list) and [type(value) for value in entry] == [int, int, int, str]


def _remember(path: Path, entry: list[int | str]) -> None:
    """Add an entry; a cache that cannot be written, or is being written, costs the next load a moment, no more."""
    with suppress(OSError, BadInput):
        folder = cache_folder()
        make_private(folder)
        with folder_lock(folder):
            memory = {place: known for place, known in _read_memory().items() if os.path.exists(place)}
            memory.pop(str(path), None)
            memory[str(path)] = entry
            with atomic_write(folder / MEMORY) as file:
                json.dump(dict(list(memory.items())[-ENTRIES:]), file)
