"""One writer at a time in a folder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doxa.errors import BadInput, BrokenFile
from doxa.storage.disk import sweep_temporaries

LOCK = ".doxa-lock"
PATIENCE = 10.0  # seconds
UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}  # file systems that lock nothing


@dataclass
class HeldLock:
    """A lock of this process: which thread has it, and how often it went in."""

    process: int
    thread: int
    depth: int = 1


_held: dict[str, HeldLock] = {}
_registry_lock = threading.Lock()


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Be the only one who writes in a folder, which is made where it is missing; what killed writers left is swept.

    The lock is the operating system's, which takes it back from a process that dies however it dies; the file tells
    others who has it. The thread that has it may take it again.
    """
    key = os.path.realpath(folder)
    if _enter_again(key, folder):
        try:
            yield
        finally:
            _leave(key)
        return
    made, process = False, os.getpid()
    try:
        made = _make_folder(folder)
        descriptor = _take(folder)
        try:
            sweep_temporaries(folder)
            yield
        finally:
            # Removed before it is let go of: who opens it in between finds that it is no longer there, and looks again.
            try:
                if os.getpid() == process:  # a child that was forked meanwhile leaves it to its parent
                    with suppress(OSError):
                        (folder / LOCK).unlink()
            finally:
                os.close(descriptor)
    finally:
        _leave(key)
        if made and os.getpid() == process:
            with suppress(OSError):  # what nothing was written to is as if it had never been
                folder.rmdir()


def _enter_again(key: str, folder: Path) -> bool:
    """Whether this thread has the lock already; else it is noted as this thread's."""
    process, thread = os.getpid(), threading.get_ident()
    with _registry_lock:
        held = _held.get(key)
        if held is None or held.process != process:  # a fork inherits the note, not the lock
            _held[key] = HeldLock(process, thread)
            return False
        if held.thread != thread:
            raise BadInput(
                f"{folder} is being written by another thread of this process; give each a folder of its own"
            )
        held.depth += 1
        return True


def _leave(key: str) -> None:
    with _registry_lock:
        held = _held[key]
        held.depth -= 1
        if not held.depth:
            del _held[key]


def _make_folder(folder: Path) -> bool:
    """Make a folder; whether it was missing."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise BadInput(f"{folder} is a file; choose another name for the folder") from None
    except OSError as error:
        raise BrokenFile(f"the folder {folder} cannot be made: {error.strerror or error}") from error
    return made


def _take(folder: Path) -> int:
    """A descriptor of the lock file, locked; the error of who comes second says who was first."""
    path = folder / LOCK
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        except OSError as error:
            if path.is_symlink():
                raise _no_lock(path) from None
            raise BrokenFile(f"cannot write in {folder}: {error.strerror or error}") from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                raise _no_lock(path)
            _lock(descriptor, folder)
            if _is_same_file(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, json.dumps(_describe_owner()).encode())
                return descriptor
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError) and not isinstance(error, BrokenFile):
                raise BrokenFile(f"cannot write in {folder}: {error.strerror or error}") from error
            raise
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    """Lock the file, or say who has it; children of an owner that died, who end with it, are waited for."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            owner = _read_owner(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK):
                if not owner or _may_live(owner) or time.monotonic() > end:
                    raise BadInput(_refusal(folder, owner)) from None
                time.sleep(0.02)
                continue
            if error.errno not in UNSUPPORTED:
                raise
            if _may_live(owner):
                raise BadInput(f"{_refusal(folder, owner)}; if it has ended, remove {folder / LOCK}") from None
            return


def _no_lock(path: Path) -> BrokenFile:
    return BrokenFile(f"{path} leads elsewhere, and is not a lock that Doxa wrote; remove it")


def _refusal(folder: Path, owner: dict[str, Any]) -> str:
    who = f"process {owner['process']} on {owner['host']} since {owner['since']}" if owner else "another process"
    return f"{folder} is being written by {who}; wait for it, or choose another folder"


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the path still leads to the file that was opened."""
    try:
        there, here = os.stat(path), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _describe_owner() -> dict[str, Any]:
    return {"process": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}


def _read_owner(descriptor: int) -> dict[str, Any]:
    """Who says in the file to be its owner; nothing, where that is unreadable."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        owner = json.loads(os.read(descriptor, 1000))
        return {"process": int(owner["process"]), "host": str(owner["host"]), "since": str(owner["since"])}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return {}


def _may_live(owner: dict[str, Any]) -> bool:
    """Whether an owner may be at work, where locks cannot tell: of another machine nobody knows."""
    if not owner:
        return False
    if owner["host"] != platform.node():
        return True
    try:
        os.kill(owner["process"], 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return bool(owner["process"] != os.getpid())
