"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from doxa.errors import BrokenFile

TEMPORARY = re.compile(r"\.doxa-[0-9a-f]{16}")


@contextmanager
def atomic_write(path: Path, mode: str = "w", keep_as: Path | None = None, **open_options: Any) -> Iterator[IO[Any]]:
    """A new file to write to, in the place of `path` once all of it is on the disk; whatever fails, nothing is lost.

    The file that was there is kept as `keep_as`, if that is given.
    """
    temporary = temporary_path(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, mode.replace("w", "x"), **open_options) as file:
            with suppress(OSError):  # so that nobody sweeps it while this process lives
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if keep_as is not None and path.exists():
                os.replace(path, keep_as)
            os.replace(temporary, path)
        _flush_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        reassurance = "; the file that was there is untouched" if path.exists() else ""
        raise BrokenFile(f"could not write {path}: {error.strerror or error}{reassurance}") from error


def temporary_path(folder: Path) -> Path:
    """A new name for a file that is to be moved to its place, or removed."""
    return folder / f".doxa-{secrets.token_hex(8)}"


def is_temporary(name: str) -> bool:
    """Whether a file of this name is what `atomic_write` writes before it is put in its place."""
    return TEMPORARY.fullmatch(name) is not None


def sweep_temporaries(folder: Path) -> None:
    """Remove what killed processes were writing in a folder; what somebody is writing is locked."""
    with suppress(OSError):
        for path in folder.iterdir():
            if is_temporary(path.name) and not _is_written(path):
                with suppress(OSError):
                    path.unlink()


def _is_written(path: Path) -> bool:
    """Whether a process that lives is writing a temporary; what is no file is not one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK)
    finally:
        os.close(descriptor)
    return not path.is_file()


def _flush_folder(folder: Path) -> None:
    """Have the names of files on the disk too, which not every file system can promise."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
